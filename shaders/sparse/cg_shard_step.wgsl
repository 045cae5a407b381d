// Conjugate gradients on shards, the step of a rank's part of the vectors, w = A r: p = r + beta p, s = w + beta s = A p,
// x += alpha p, r -= alpha s. A thread takes every `stride`-th element.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const ALPHA: u32 = 0u;
const BETA: u32 = 1u;

struct Params { n: u32, stride: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<f32>;
@group(0) @binding(3) var<storage, read_write> r: array<f32>;
@group(0) @binding(4) var<storage, read_write> p: array<f32>;
@group(0) @binding(5) var<storage, read_write> s: array<f32>;
@group(0) @binding(6) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn cg_shard_step(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let alpha = state[ALPHA];
    let beta = state[BETA];
    for (var i = workgroup_index(group) * WORKGROUP_SIZE + lane; i < params.n; i += params.stride) {
        let residual = r[i];
        let direction = residual + beta * p[i];
        let along = w[i] + beta * s[i];
        p[i] = direction;
        s[i] = along;
        x[i] += alpha * direction;
        r[i] = residual - alpha * along;
    }
}
