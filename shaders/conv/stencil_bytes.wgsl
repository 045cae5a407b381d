// Elements of u8, as numbers.
#import conv/byte_input
#import conv/byte_output

alias Group = vec4<f32>;

fn load(i: u32) -> f32 { return f32(byte_at(i)); }

#if VECTORS
fn load_group(i: u32) -> Group {
    let word = input[i];
    return vec4<f32>(vec4(word & 255u, (word >> 8u) & 255u, (word >> 16u) & 255u, word >> 24u));
}
#endif

// Stores each to the nearest of 0 ... 255, ties to even.
fn put_group(p: vec3<u32>, group: Group) {
    let whole = vec4<u32>(clamp(round(group), vec4(0.0), vec4(255.0)));
    put_word(p, whole.x | (whole.y << 8u) | (whole.z << 16u) | (whole.w << 24u));
}
