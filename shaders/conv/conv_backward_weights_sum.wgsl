// The sum of slabs, in their order, added to the result of earlier dispatches, except in the first.
// One thread adds one element; a workgroup WORKGROUP_SIZE of them.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { len: u32, slabs: u32, first: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> slabs: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_backward_weights_sum(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.len { return; }
    var sum = 0.0;
    if params.first == 0u { sum = output[at]; }
    for (var slab = 0u; slab < params.slabs; slab++) { sum += slabs[slab * params.len + at]; }
    output[at] = sum;
}
