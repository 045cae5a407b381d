// Keys and values of f32.
#if KEYS
const K_BINDING: u32 = 2u;
@group(0) @binding(K_BINDING) var<storage, read> k: array<vec4<f32>>;

fn key_four(row: u32, four: u32) -> vec4<f32> {
    return k[row * FOURS + four - params.base_kv];
}
#endif
#if VALUES
const V_BINDING: u32 = 3u;
@group(0) @binding(V_BINDING) var<storage, read> v: array<vec4<f32>>;

fn value_four(row: u32, four: u32) -> vec4<f32> {
    return v[row * FOURS + four - params.base_kv];
}
#endif
