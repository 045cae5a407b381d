// Reads quantised keys and values, with a scale for each row: four elements at a time, or eight with EIGHTS.
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
// Declares the keys or the values, and the function that reads them.
#block rows_of(name, list, upper, binding, scale)
const {upper}_BINDING: u32 = {binding}u;
@group(0) @binding({upper}_BINDING) var<storage, read> {list}: array<KvWords>;

#if EIGHTS
fn {name}_eight(row: u32, eight: u32) -> Eight {
    let words = {list}[row * (VEC4S / 2u) + eight - params.base_kv / 2u];
    let scale = scales[{scale}];
    return Eight(unpack_bytes(words.x) * scale, unpack_bytes(words.y) * scale);
}
#else
fn {name}_vec4(row: u32, column: u32) -> vec4<f32> {
    return unpack_bytes({list}[row * VEC4S + column - params.base_kv]) * scales[{scale}];
}
#endif
#end
#if KEYS
#put rows_of(key, k, K, 2, row)
#endif
#if VALUES
#put rows_of(value, v, V, 3, params.kv_rows + row)
#endif
