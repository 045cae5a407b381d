// The values of a matrix: f32, or with HALF f16, two in a word, so that no device feature is needed.
const VALUES_BINDING: u32 = 3u;
#if HALF
@group(0) @binding(VALUES_BINDING) var<storage, read> values: array<u32>;

fn value(i: u32) -> f32 {
    return unpack2x16float(values[i / 2u] >> (16u * (i % 2u))).x;
}
#else
@group(0) @binding(VALUES_BINDING) var<storage, read> values: array<f32>;

fn value(i: u32) -> f32 {
    return values[i];
}
#endif
