// Floats of 8 bits, E4M3 without infinities (Micikevicius et al., "FP8 formats for deep learning", 2022), four in a
// word from its lowest byte, as f32 and back. Rounded to nearest, ties to even, saturated to 448; NaN is 0x7f.
// Integers only: a driver may flush subnormal floats, round sums differently, or assume that NaN never occurs.

fn unpack_fp8(word: u32) -> vec4<f32> {
    let bytes = vec4(word) >> vec4(0u, 8u, 16u, 24u);
    let size = bytes & vec4(0x7fu);
    // The exponent biased by 127 instead of 7. Below 2^-6 a code counts steps of 2^-9.
    let normal = (size << vec4(20u)) + vec4(0x3c000000u);
    let tiny = bitcast<vec4<u32>>(vec4<f32>(size) * vec4(0.001953125));
    let finite = select(normal, tiny, size < vec4(8u));
    let magnitude = select(finite, vec4(0x7fc00000u), size == vec4(0x7fu));
    return bitcast<vec4<f32>>(magnitude | ((bytes & vec4(0x80u)) << vec4(24u)));
}

fn pack_fp8(x: vec4<f32>) -> u32 {
    let bits = bitcast<vec4<u32>>(x);
    let all = bits & vec4(0x7fffffffu);
    let size = min(all, vec4(0x43e00000u));
    // Below 2^-6, of exponent 121, as many bits less as the exponent is; 25 are all of them.
    let exponent = max(size >> vec4(23u), vec4(121u));
    let shift = vec4(20u) + min(exponent - (size >> vec4(23u)), vec4(5u));
    let significand = (size & vec4(0x7fffffu)) | vec4(0x800000u);
    let odd = (significand >> shift) & vec4(1u);
    let rounded = (significand + (vec4(1u) << (shift - vec4(1u))) - vec4(1u) + odd) >> shift;
    // The leading bit of the significand counts as one exponent, and so does a carry.
    let code = (((exponent - vec4(121u)) << vec4(3u)) + rounded) | ((bits >> vec4(24u)) & vec4(0x80u));
    let codes = select(code, vec4(0x7fu), all > vec4(0x7f800000u));
    return codes.x | (codes.y << 8u) | (codes.z << 16u) | (codes.w << 24u);
}
