// Reads keys and values of f16 as f32: four elements at a time, or eight with EIGHTS.
#if EIGHTS
alias KvWords = vec4<u32>;
struct Eight {
    a: vec4<f32>,
    b: vec4<f32>,
}
#else
alias KvWords = vec2<u32>;
#endif
// Declares the keys or the values, and the function that reads them.
#block rows_of(name, list, upper, binding)
const {upper}_BINDING: u32 = {binding}u;
@group(0) @binding({upper}_BINDING) var<storage, read> {list}: array<KvWords>;

#if EIGHTS
fn {name}_eight(row: u32, eight: u32) -> Eight {
    let words = {list}[row * (VEC4S / 2u) + eight - params.base_kv / 2u];
    let a = vec4(unpack2x16float(words.x), unpack2x16float(words.y));
    let b = vec4(unpack2x16float(words.z), unpack2x16float(words.w));
    return Eight(a, b);
}
#else
fn {name}_vec4(row: u32, column: u32) -> vec4<f32> {
    let words = {list}[row * VEC4S + column - params.base_kv];
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
#endif
#end
#if KEYS
#put rows_of(key, k, K, 2)
#endif
#if VALUES
#put rows_of(value, v, V, 3)
#endif
