// Reads keys and values of f16 as f32: four elements at a time, or eight with EIGHTS.
#import attention/ragged
#if EIGHTS
alias KvWords = vec4<u32>;
#else
alias KvWords = vec2<u32>;
#endif
// Declares the keys or the values, and the function that reads them.
#block rows_of(name, list, upper, binding, dims, vec4s, base, scale)
const {upper}_BINDING: u32 = {binding}u;
#if {dims} % 4 > 0
@group(0) @binding({upper}_BINDING) var<storage, read> {list}: array<u32>;

fn {name}_element(row: u32, at: u32) -> f32 {
    return unpack2x16float({list}[at / 2u] >> (at % 2u * 16u)).x;
}
#put ragged_vec4({name}, {dims}, {base})
#else
#if !EIGHTS || {dims} % 8 == 0
@group(0) @binding({upper}_BINDING) var<storage, read> {list}: array<KvWords>;
#else
@group(0) @binding({upper}_BINDING) var<storage, read> {list}: array<vec2<u32>>;
#endif

#if !EIGHTS || {dims} % 8 > 0
fn {name}_vec4(row: u32, column: u32) -> vec4<f32> {
    let words = {list}[row * {vec4s} + column - params.{base}];
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
#endif
#endif
#if EIGHTS
#if {dims} % 8 > 0
#put ragged_eight({name}, {vec4s})
#else
fn {name}_eight(row: u32, eight: u32) -> Eight {
    let words = {list}[row * ({vec4s} / 2u) + eight - params.{base} / 2u];
    let a = vec4(unpack2x16float(words.x), unpack2x16float(words.y));
    let b = vec4(unpack2x16float(words.z), unpack2x16float(words.w));
    return Eight(a, b);
}
#endif
#endif
#end
#import attention/kv_rows
