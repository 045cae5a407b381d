// max(x, 0), by bits: WGSL's max drops NaN, and a comparison may be folded as if there were none.
fn activate(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    // From -0 to -infinity; a NaN with its sign set lies above.
    return select(x, 0.0, bits >= 0x80000000u && bits <= 0xff800000u);
}
