// Elements of u8, written from numbers by groups of four elements of a row. With VECTORS words do not straddle rows.
const PACK: u32 = 4u;

#if VECTORS
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

// Stores the group that begins at `p`, which lies inside; elements after the row do not count.
fn put_word(p: vec3<u32>, bytes: u32) {
    output[(p.z * params.h + p.y) * params.groups + p.x / PACK] = bytes;
}
#else
// A word may belong to two rows, and so to two threads: each changes only its own bytes.
@group(0) @binding(2) var<storage, read_write> output: array<atomic<u32>>;

fn put_bytes(word: u32, mask: u32, bytes: u32) {
    if mask == 0xffffffffu {
        atomicStore(&output[word], bytes);
    } else if mask != 0u {
        atomicAnd(&output[word], ~mask);
        atomicOr(&output[word], bytes & mask);
    }
}

fn put_word(p: vec3<u32>, bytes: u32) {
    let first = (p.z * params.h + p.y) * params.w + p.x;
    let count = min(PACK, params.w - p.x);
    let mask = 0xffffffffu >> (32u - 8u * count);
    let shift = 8u * (first % 4u);
    put_bytes(first / 4u, mask << shift, bytes << shift);
    if shift > 0u {
        put_bytes(first / 4u + 1u, mask >> (32u - shift), bytes >> (32u - shift));
    }
}
#endif

// Stores each as the nearest of 0 ... 255, ties to even.
fn put_group(p: vec3<u32>, group: vec4<f32>) {
    let whole = vec4<u32>(clamp(round(group), vec4(0.0), vec4(255.0)));
    put_word(p, whole.x | (whole.y << 8u) | (whole.z << 16u) | (whole.w << 24u));
}
