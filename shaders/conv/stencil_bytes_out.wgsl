// Elements of u8, written from numbers.
#import conv/byte_output

// Stores each to the nearest of 0 ... 255, ties to even.
fn put_group(p: vec3<u32>, group: vec4<f32>) {
    let whole = vec4<u32>(clamp(round(group), vec4(0.0), vec4(255.0)));
    put_word(p, whole.x | (whole.y << 8u) | (whole.z << 16u) | (whole.w << 24u));
}
