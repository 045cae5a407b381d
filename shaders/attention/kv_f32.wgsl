// Reads keys and values of f32: four elements at a time, or eight with EIGHTS.
alias KvWords = vec4<f32>;
#if EIGHTS
struct Eight {
    a: vec4<f32>,
    b: vec4<f32>,
}
#endif
// Declares the keys or the values, and the function that reads them.
#block rows_of(name, list, upper, binding)
const {upper}_BINDING: u32 = {binding}u;
@group(0) @binding({upper}_BINDING) var<storage, read> {list}: array<KvWords>;

#if EIGHTS
fn {name}_eight(row: u32, eight: u32) -> Eight {
    let at = row * VEC4S + 2u * eight - params.base_kv;
    return Eight({list}[at], {list}[at + 1u]);
}
#else
fn {name}_vec4(row: u32, column: u32) -> vec4<f32> {
    return {list}[row * VEC4S + column - params.base_kv];
}
#endif
#end
#if KEYS
#put rows_of(key, k, K, 2)
#endif
#if VALUES
#put rows_of(value, v, V, 3)
#endif
