// Conjugate gradients on shards, the part of a step that needs no sum of w r: the x of the step before, x += alpha p, then
// p = r + beta p, s = w + beta s = A p (A. T. Chronopoulos and C. W. Gear, 1989). A thread takes every `stride`-th element.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const BETA: u32 = 0u;
const ALPHA: u32 = 1u;     // of the step before

struct Params { n: u32, stride: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> turn: array<f32>;
@group(0) @binding(2) var<storage, read> r: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> p: array<f32>;
@group(0) @binding(5) var<storage, read_write> s: array<f32>;
@group(0) @binding(6) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn cg_shard_directions(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let beta = turn[BETA];
    let alpha = turn[ALPHA];
    let first = workgroup_index(group) * WORKGROUP_SIZE + lane;
    // A folded dispatch has more workgroups than it needs.
    if first >= params.stride { return; }
    for (var i = first; i < params.n; i += params.stride) {
        let before = p[i];
        x[i] += alpha * before;
        p[i] = r[i] + beta * before;
        s[i] = w[i] + beta * s[i];
    }
}
