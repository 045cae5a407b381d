// Adds the partial sums of each weight, one workgroup for each.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    weights: u32,
    parts: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partials: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

var<workgroup> wg_sums: array<f32, WORKGROUP_SIZE>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn pool_backward_weights_sum(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let weight = workgroup_index(group);
    if weight >= params.weights {
        return;
    }
    var sum = 0.0;
    // Loads are in flight together.
    for (var part = lane; part < params.parts; part += 4u * WORKGROUP_SIZE) {
#for i in 4
        let at_{i} = part + {i}u * WORKGROUP_SIZE;
        let part_{i} = partials[weight * params.parts + min(at_{i}, params.parts - 1u)];
#end
#for i in 4
        sum += select(0.0, part_{i}, at_{i} < params.parts);
#end
    }
    wg_sums[lane] = sum;
    for (var stride = WORKGROUP_SIZE / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if lane < stride {
            wg_sums[lane] += wg_sums[lane + stride];
        }
    }
    if lane == 0u {
        output[weight] = wg_sums[0];
    }
}
