// Keys and values in bytes, with a factor for each row: fours of elements, or eights with EIGHTS.
#import attention/bytes_int8 as bytes

const SCALES_BINDING: u32 = 4u;
@group(0) @binding(SCALES_BINDING) var<storage, read> scales: array<f32>;
#if EIGHTS
alias KvWords = vec2<u32>;
struct Eight {
    a: vec4<f32>,
    b: vec4<f32>,
}
#else
alias KvWords = u32;
#endif
#if KEYS
const K_BINDING: u32 = 2u;
@group(0) @binding(K_BINDING) var<storage, read> k: array<KvWords>;

#if EIGHTS
fn key_eight(row: u32, eight: u32) -> Eight {
    let words = k[row * (FOURS / 2u) + eight - params.base_kv / 2u];
    let scale = scales[row];
    return Eight(unpack_bytes(words.x) * scale, unpack_bytes(words.y) * scale);
}
#else
fn key_four(row: u32, four: u32) -> vec4<f32> {
    return unpack_bytes(k[row * FOURS + four - params.base_kv]) * scales[row];
}
#endif
#endif
#if VALUES
const V_BINDING: u32 = 3u;
@group(0) @binding(V_BINDING) var<storage, read> v: array<KvWords>;

#if EIGHTS
fn value_eight(row: u32, eight: u32) -> Eight {
    let words = v[row * (FOURS / 2u) + eight - params.base_kv / 2u];
    let scale = scales[params.kv_rows + row];
    return Eight(unpack_bytes(words.x) * scale, unpack_bytes(words.y) * scale);
}
#else
fn value_four(row: u32, four: u32) -> vec4<f32> {
    return unpack_bytes(v[row * FOURS + four - params.base_kv]) * scales[params.kv_rows + row];
}
#endif
#endif
