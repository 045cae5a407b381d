// Reads quantised keys and values, with a scale for each row: four elements at a time, or eight with EIGHTS.
#import attention/bytes_int8 as bytes
#import attention/ragged

const SCALES_BINDING: u32 = 4u;
@group(0) @binding(SCALES_BINDING) var<storage, read> scales: array<f32>;
#if EIGHTS
alias KvWords = vec2<u32>;
#else
alias KvWords = u32;
#endif
// Declares the keys or the values, and the function that reads them.
#block rows_of(name, list, upper, binding, dims, vec4s, base, scale)
const {upper}_BINDING: u32 = {binding}u;
#if !EIGHTS || {dims} % 8 == 0
@group(0) @binding({upper}_BINDING) var<storage, read> {list}: array<KvWords>;
#else
@group(0) @binding({upper}_BINDING) var<storage, read> {list}: array<u32>;
#endif

#if !EIGHTS || {dims} % 8 > 0
#if {dims} % 4 > 0
fn {name}_element(row: u32, at: u32) -> f32 {
    return unpack_bytes({list}[at / 4u] >> (at % 4u * 8u)).x * scales[{scale}];
}
#put ragged_vec4({name}, {dims}, {base})
#else
fn {name}_vec4(row: u32, column: u32) -> vec4<f32> {
    return unpack_bytes({list}[row * {vec4s} + column - params.{base}]) * scales[{scale}];
}
#endif
#endif
#if EIGHTS
#if {dims} % 8 > 0
#put ragged_eight({name}, {vec4s})
#else
fn {name}_eight(row: u32, eight: u32) -> Eight {
    let words = {list}[row * ({vec4s} / 2u) + eight - params.{base} / 2u];
    let scale = scales[{scale}];
    return Eight(unpack_bytes(words.x) * scale, unpack_bytes(words.y) * scale);
}
#endif
#endif
#end
#import attention/kv_rows
