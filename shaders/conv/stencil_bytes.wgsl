// Elements of u8, four in a word. With VECTORS words do not straddle rows.
alias Group = vec4<f32>;
const PACK: u32 = 4u;

@group(0) @binding(1) var<storage, read> input: array<u32>;

// To the nearest of 0 ... 255, ties to even.
fn quantized(group: Group) -> u32 {
    let whole = vec4<u32>(clamp(round(group), vec4(0.0), vec4(255.0)));
    return whole.x | (whole.y << 8u) | (whole.z << 16u) | (whole.w << 24u);
}

#if VECTORS
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

fn load_group(i: u32) -> Group {
    let word = input[i];
    return vec4<f32>(vec4(word & 255u, (word >> 8u) & 255u, (word >> 16u) & 255u, word >> 24u));
}

fn put_group(p: vec3<u32>, group: Group) {
    output[(p.z * params.h + p.y) * params.groups + p.x / PACK] = quantized(group);
}
#else
// A word may belong to two rows, and so to two invocations: each changes only its own bytes.
@group(0) @binding(2) var<storage, read_write> output: array<atomic<u32>>;

fn put_bytes(word: u32, mask: u32, bytes: u32) {
    if mask == 0xffffffffu {
        atomicStore(&output[word], bytes);
    } else if mask != 0u {
        atomicAnd(&output[word], ~mask);
        atomicOr(&output[word], bytes & mask);
    }
}

fn put_group(p: vec3<u32>, group: Group) {
    let first = (p.z * params.h + p.y) * params.w + p.x;
    let count = min(PACK, params.w - p.x);
    let mask = 0xffffffffu >> (32u - 8u * count);
    let bytes = quantized(group);
    let shift = 8u * (first % 4u);
    put_bytes(first / 4u, mask << shift, bytes << shift);
    if shift > 0u {
        put_bytes(first / 4u + 1u, mask >> (32u - shift), bytes >> (32u - shift));
    }
}
#endif

fn load(i: u32) -> f32 { return f32((input[i / 4u] >> (8u * (i % 4u))) & 255u); }
