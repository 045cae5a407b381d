// Keys and values of f16, computed in f32.
#if KEYS
const K_BINDING: u32 = 2u;
@group(0) @binding(K_BINDING) var<storage, read> k: array<vec2<u32>>;

fn key_four(row: u32, four: u32) -> vec4<f32> {
    let words = k[row * FOURS + four - params.base_kv];
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
#endif
#if VALUES
const V_BINDING: u32 = 3u;
@group(0) @binding(V_BINDING) var<storage, read> v: array<vec2<u32>>;

fn value_four(row: u32, four: u32) -> vec4<f32> {
    let words = v[row * FOURS + four - params.base_kv];
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
#endif
