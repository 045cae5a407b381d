// Elements of u8, written from numbers by groups of four elements of a row. With VECTORS words do not straddle rows.
const PACK: u32 = 4u;

#if VECTORS
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

// Stores the group that begins at `p`, which lies inside; elements after the row do not count.
fn put_word(p: vec3<u32>, bytes: u32) {
    output[(p.z * params.h + p.y) * params.groups + p.x / PACK] = bytes;
}
#else
#import conv/stencil_words_out

fn put_word(p: vec3<u32>, bytes: u32) {
    let first = (p.z * params.h + p.y) * params.w + p.x;
    let count = min(PACK, params.w - p.x);
    let mask = 0xffffffffu >> (32u - 8u * count);
    let shift = 8u * (first % 4u);
    put_bits(first / 4u, mask << shift, bytes << shift);
    if shift > 0u {
        put_bits(first / 4u + 1u, mask >> (32u - shift), bytes >> (32u - shift));
    }
}
#endif

// Stores each as the nearest of 0 ... 255, ties to even.
fn put_group(p: vec3<u32>, group: vec4<f32>) {
    let whole = vec4<u32>(clamp(round(group), vec4(0.0), vec4(255.0)));
    put_word(p, whole.x | (whole.y << 8u) | (whole.z << 16u) | (whole.w << 24u));
}
