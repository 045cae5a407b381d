// Conjugate gradients on shards, a step along p: p = r + beta p, s = w + beta s = A p, x += alpha p, r -= alpha s
// (A. T. Chronopoulos and C. W. Gear, 1989). A thread takes every `stride`-th element.
#import sparse/cg_shard_state
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { n: u32, stride: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read> w: array<f32>;
@group(0) @binding(3) var<storage, read_write> p: array<f32>;
@group(0) @binding(4) var<storage, read_write> s: array<f32>;
@group(0) @binding(5) var<storage, read_write> x: array<f32>;
@group(0) @binding(6) var<storage, read_write> r: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn cg_shard_update(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = workgroup_index(group) * WORKGROUP_SIZE + lane;
    // A folded dispatch has more workgroups than it needs. A solve that has ended keeps its x.
    if first >= params.stride || state[STATUS] != GOING { return; }
    let alpha = bitcast<f32>(state[ALPHA]);
    let beta = bitcast<f32>(state[BETA]);
    for (var i = first; i < params.n; i += params.stride) {
        let along = r[i] + beta * p[i];
        let product = w[i] + beta * s[i];
        p[i] = along;
        s[i] = product;
        x[i] += alpha * along;
        r[i] -= alpha * product;
    }
}
