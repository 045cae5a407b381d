// e^x, 0 for x = -infinity and NaN for NaN, which some drivers drop.
fn is_nan4(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) & vec4(0x7fffffffu)) > vec4(0x7f800000u);
}

fn exp4(x: vec4<f32>) -> vec4<f32> { return select(exp(x), x, is_nan4(x)); }
