// e^x, 0 for x = -infinity and NaN for NaN, which some drivers drop.
fn is_nan4(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<u32>>(x) & vec4(0x7fffffffu)) > vec4(0x7f800000u); }

fn exp4(x: vec4<f32>) -> vec4<f32> { return select(exp(x), x, is_nan4(x)); }

// What to subtract from the elements of a row before exp4. The largest of a row of nothing but -infinity is -infinity.
fn anchor(largest: f32) -> f32 { return select(largest, 0.0, bitcast<u32>(largest) == 0xff800000u); }
