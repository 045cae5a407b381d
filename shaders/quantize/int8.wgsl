// Signed bytes, four in a word from its lowest byte, as floats and back. Rounded to nearest, ties to even,
// saturated to -127 ... 127, so that both signs have the same range; NaN becomes 0.
#import element/is_nan

fn unpack_int8(word: u32) -> vec4<f32> {
    return vec4<f32>(bitcast<vec4<i32>>(vec4(word) << vec4(24u, 16u, 8u, 0u)) >> vec4(24u));
}

fn int8_of(x: f32) -> u32 { return select(bitcast<u32>(i32(clamp(round(x), -127.0, 127.0))), 0u, is_nan(x)); }

fn pack_int8(x: vec4<f32>) -> u32 {
    let bytes = vec4(int8_of(x.x), int8_of(x.y), int8_of(x.z), int8_of(x.w)) & vec4(0xffu);
    return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}
