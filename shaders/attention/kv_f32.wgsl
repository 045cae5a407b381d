// Reads keys and values of f32: four elements at a time, or eight with EIGHTS.
#import attention/ragged
alias KvWords = vec4<f32>;
// Declares the keys or the values, and the function that reads them.
#block rows_of(name, list, upper, binding, dims, vec4s, base, scale)
const {upper}_BINDING: u32 = {binding}u;
#if {dims} % 4 > 0
@group(0) @binding({upper}_BINDING) var<storage, read> {list}: array<f32>;

fn {name}_element(row: u32, at: u32) -> f32 {
    return {list}[at];
}
#put ragged_vec4({name}, {dims}, {base})
#else
@group(0) @binding({upper}_BINDING) var<storage, read> {list}: array<KvWords>;

#if !EIGHTS || {dims} % 8 > 0
fn {name}_vec4(row: u32, column: u32) -> vec4<f32> {
    return {list}[row * {vec4s} + column - params.{base}];
}
#endif
#endif
#if EIGHTS
#if {dims} % 8 > 0
#put ragged_eight({name}, {vec4s})
#else
fn {name}_eight(row: u32, eight: u32) -> Eight {
    let at = row * {vec4s} + 2u * eight - params.{base};
    return Eight({list}[at], {list}[at + 1u]);
}
#endif
#endif
#end
#import attention/kv_rows
