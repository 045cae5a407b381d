// Keys and values of f32: fours of elements, or eights with EIGHTS.
#if EIGHTS
alias KvWords = vec4<f32>;
struct Eight {
    a: vec4<f32>,
    b: vec4<f32>,
}
#else
alias KvWords = vec4<f32>;
#endif
#if KEYS
const K_BINDING: u32 = 2u;
@group(0) @binding(K_BINDING) var<storage, read> k: array<KvWords>;

#if EIGHTS
fn key_eight(row: u32, eight: u32) -> Eight {
    let at = row * FOURS + 2u * eight - params.base_kv;
    return Eight(k[at], k[at + 1u]);
}
#else
fn key_four(row: u32, four: u32) -> vec4<f32> {
    return k[row * FOURS + four - params.base_kv];
}
#endif
#endif
#if VALUES
const V_BINDING: u32 = 3u;
@group(0) @binding(V_BINDING) var<storage, read> v: array<KvWords>;

#if EIGHTS
fn value_eight(row: u32, eight: u32) -> Eight {
    let at = row * FOURS + 2u * eight - params.base_kv;
    return Eight(v[at], v[at + 1u]);
}
#else
fn value_four(row: u32, four: u32) -> vec4<f32> {
    return v[row * FOURS + four - params.base_kv];
}
#endif
#endif
