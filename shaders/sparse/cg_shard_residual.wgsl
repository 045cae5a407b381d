// Conjugate gradients on shards, the end of a step: r -= alpha s, and partial sums of the new r r over a rank's part.
#import op/add as op
#import workgroup/index
#import workgroup/reduce

const WORKGROUP_SIZE: u32 = 256u;
alias Acc = vec2<f32>;

struct Params { n: u32, parts: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> alpha: array<f32>;
@group(0) @binding(2) var<storage, read> s: array<f32>;
@group(0) @binding(3) var<storage, read_write> r: array<f32>;
@group(0) @binding(4) var<storage, read_write> partials: array<vec2<f32>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn cg_shard_residual(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let part = workgroup_index(group);
    if part >= params.parts { return; }
    let length = alpha[0];
    var sums = op_identity();
    for (var i = part * WORKGROUP_SIZE + lane; i < params.n; i += params.parts * WORKGROUP_SIZE) {
        let residual = r[i] - length * s[i];
        r[i] = residual;
        sums += vec2<f32>(residual * residual, 0.0);
    }
    let total = workgroup_reduce(sums, lane);
    if lane == 0u { partials[part] = total; }
}
