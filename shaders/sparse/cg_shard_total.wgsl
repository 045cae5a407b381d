// Conjugate gradients on shards: one workgroup adds up a rank's partial sums of r r and w r.
#import op/add as op
#import workgroup/reduce

const WORKGROUP_SIZE: u32 = 256u;
alias Acc = vec2<f32>;

struct Params { parts: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partials: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn cg_shard_total(@builtin(local_invocation_index) lane: u32) {
    var sum = op_identity();
    for (var i = lane; i < params.parts; i += WORKGROUP_SIZE) { sum += partials[i]; }
    let total = workgroup_reduce(sum, lane);
    if lane == 0u {
        sums[0] = total.x;
        sums[1] = total.y;
    }
}
