// Kept are elements that differ from the one before, and the first: the heads of runs. Floats by value, so
// that -0 equals +0 and NaN equals nothing, but in bits, since a device may take subnormal numbers for 0.
fn differs(a: u32, b: u32) -> bool {
#if FLOAT
    let zeros = ((a | b) & 0x7fffffffu) == 0u;
    return (a != b && !zeros) || (a & 0x7fffffffu) > 0x7f800000u;
#else
    return a != b;
#endif
}

fn keep4(at: vec4<u32>, bits: vec4<u32>) -> vec4<bool> {
    let near = max(at, vec4<u32>(1u)) - vec4<u32>(1u);
    let other = vec4<bool>(
        differs(bits.x, input[near.x]), differs(bits.y, input[near.y]), differs(bits.z, input[near.z]),
        differs(bits.w, input[near.w]),
    );
    return other | (at == vec4<u32>(0u));
}
