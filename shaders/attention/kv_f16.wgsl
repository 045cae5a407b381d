// Keys and values of f16, computed in f32: fours of elements, or eights with EIGHTS.
#if EIGHTS
alias KvWords = vec4<u32>;
struct Eight {
    a: vec4<f32>,
    b: vec4<f32>,
}
#else
alias KvWords = vec2<u32>;
#endif
// Keys, or values: a list, and its rows.
#block rows_of(name, list, upper, binding)
const {upper}_BINDING: u32 = {binding}u;
@group(0) @binding({upper}_BINDING) var<storage, read> {list}: array<KvWords>;

#if EIGHTS
fn {name}_eight(row: u32, eight: u32) -> Eight {
    let words = {list}[row * (FOURS / 2u) + eight - params.base_kv / 2u];
    let a = vec4(unpack2x16float(words.x), unpack2x16float(words.y));
    let b = vec4(unpack2x16float(words.z), unpack2x16float(words.w));
    return Eight(a, b);
}
#else
fn {name}_four(row: u32, four: u32) -> vec4<f32> {
    let words = {list}[row * FOURS + four - params.base_kv];
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
