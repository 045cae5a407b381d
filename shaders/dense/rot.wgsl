// Pairs of elements of two vectors times a matrix of 2 x 2, in place. With GIVEN it is the rotation by (c, s), with
// PARAM that of BLAS's rotm. A thread makes a word of each vector; a word that they fill only in part keeps the rest.
#import element/f32 as element
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { n: u32, h11: f32, h12: f32, h21: f32, h22: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
#if GIVEN
@group(0) @binding(3) var<storage, read> rotation: array<f32>;

fn matrix() -> vec4<f32> { return vec4(rotation[0], rotation[1], -rotation[1], rotation[0]); }
#else
#if PARAM
@group(0) @binding(3) var<storage, read> param: array<f32>;

fn matrix() -> vec4<f32> {
    if param[0] == 0.0 { return vec4(1.0, param[3], param[2], 1.0); }
    if param[0] > 0.0 { return vec4(param[1], 1.0, -1.0, param[4]); }
    return vec4(param[1], param[3], param[2], param[4]);
}
#else
fn matrix() -> vec4<f32> { return vec4(params.h11, params.h12, params.h21, params.h22); }
#endif
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn rot(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let word = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if word >= (params.n - 1u) / PACK + 1u { return; }
#if PARAM
    // The identity is exact for NaN and infinities, too.
    if param[0] == -2.0 { return; }
#endif
    let a = x[word];
    let b = y[word];
    let u = vec2(decode(a, 0u), decode(a, PACK - 1u));
    let v = vec2(decode(b, 0u), decode(b, PACK - 1u));
    let h = matrix();
    let new_x = h.x * u + h.y * v;
    let new_y = h.z * u + h.w * v;
    let bits = min(PACK, params.n - word * PACK) * (32u / PACK);
    x[word] = insertBits(a, encode(new_x.x, new_x.y), 0u, bits);
    y[word] = insertBits(b, encode(new_y.x, new_y.y), 0u, bits);
}
