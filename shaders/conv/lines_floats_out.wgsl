// Elements of f32, written by groups of four. With VECTORS groups do not straddle rows.
const PACK: u32 = 4u;

#if VECTORS
@group(0) @binding(2) var<storage, read_write> output: array<vec4<f32>>;

fn put_group(p: vec3<u32>, group: vec4<f32>) {
    output[(p.z * params.h + p.y) * params.groups + p.x / PACK] = group;
}
#else
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

fn put_group(p: vec3<u32>, group: vec4<f32>) {
    let first = (p.z * params.h + p.y) * params.w + p.x;
    for (var i = 0u; i < min(PACK, params.w - p.x); i++) { output[first + i] = group[i]; }
}
#endif
