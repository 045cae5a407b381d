// Whether x is a NaN, by bits: `x != x` is false for NaN on some drivers.
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
