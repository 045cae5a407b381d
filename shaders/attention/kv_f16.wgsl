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
#if KEYS
const K_BINDING: u32 = 2u;
@group(0) @binding(K_BINDING) var<storage, read> k: array<KvWords>;

#if EIGHTS
fn key_eight(row: u32, eight: u32) -> Eight {
    let words = k[row * (FOURS / 2u) + eight - params.base_kv / 2u];
    let a = vec4(unpack2x16float(words.x), unpack2x16float(words.y));
    let b = vec4(unpack2x16float(words.z), unpack2x16float(words.w));
    return Eight(a, b);
}
#else
fn key_four(row: u32, four: u32) -> vec4<f32> {
    let words = k[row * FOURS + four - params.base_kv];
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
#endif
#endif
#if VALUES
const V_BINDING: u32 = 3u;
@group(0) @binding(V_BINDING) var<storage, read> v: array<KvWords>;

#if EIGHTS
fn value_eight(row: u32, eight: u32) -> Eight {
    let words = v[row * (FOURS / 2u) + eight - params.base_kv / 2u];
    let a = vec4(unpack2x16float(words.x), unpack2x16float(words.y));
    let b = vec4(unpack2x16float(words.z), unpack2x16float(words.w));
    return Eight(a, b);
}
#else
fn value_four(row: u32, four: u32) -> vec4<f32> {
    let words = v[row * FOURS + four - params.base_kv];
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
#endif
#endif
