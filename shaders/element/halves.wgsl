// The codec of f16 elements, two in a word, computed in f32, so that no device feature is needed.
// unpack2x16float, since bitcast<vec2<f16>> is miscompiled by naga. But not pack2x16float: devices
// round it to nearest or towards zero, and its overflow is undefined.
fn decode(word: u32, i: u32) -> f32 { return unpack2x16float(word >> (16u * i)).x; }

// To nearest, ties to even, as F. Giesen's float_to_half_fast3_rtne.
fn encode(first: f32, second: f32) -> u32 {
    let bits = bitcast<vec2<u32>>(vec2<f32>(first, second));
    let size = bits & vec2<u32>(0x7fffffffu);
    // Exponent biased by 15 instead of 127, mantissa cut to 10 bits; a carry may well reach infinity.
    let odd = (size >> vec2<u32>(13u)) & vec2<u32>(1u);
    let normal = (size - vec2<u32>(0x38000000u - 0xfffu) + odd) >> vec2<u32>(13u);
    // Below 2^-14: adding 0.5 aligns the mantissa with f16's smallest step and lets the adder round.
    let tiny = bitcast<vec2<u32>>(bitcast<vec2<f32>>(size) + vec2<f32>(0.5)) - vec2<u32>(0x3f000000u);
    let huge = select(vec2<u32>(0x7c00u), vec2<u32>(0x7e00u), size > vec2<u32>(0x7f800000u));
    let finite = select(normal, tiny, size < vec2<u32>(0x38800000u));
    let magnitude = select(finite, huge, size >= vec2<u32>(0x47800000u));
    let halves = magnitude | ((bits >> vec2<u32>(16u)) & vec2<u32>(0x8000u));
    return halves.x | (halves.y << 16u);
}
