// Keys and values of signed bytes, with a factor for each row.
#import quantize/int8

const SCALES_BINDING: u32 = 4u;
@group(0) @binding(SCALES_BINDING) var<storage, read> scales: array<f32>;
#if KEYS
const K_BINDING: u32 = 2u;
@group(0) @binding(K_BINDING) var<storage, read> k: array<u32>;

fn key_four(row: u32, four: u32) -> vec4<f32> {
    return unpack_int8(k[row * FOURS + four - params.base_kv]) * scales[row];
}
#endif
#if VALUES
const V_BINDING: u32 = 3u;
@group(0) @binding(V_BINDING) var<storage, read> v: array<u32>;

fn value_four(row: u32, four: u32) -> vec4<f32> {
    return unpack_int8(v[row * FOURS + four - params.base_kv]) * scales[params.kv_rows + row];
}
#endif
