// A convolution layer whose k was split: the sum of slabs, in their order, with bias and activation. A slab has the
// outputs of a chunk of images.
// One thread adds one output; a workgroup WORKGROUP_SIZE of them.
#import workgroup/index
#import conv/conv_end

const WORKGROUP_SIZE: u32 = 256u;
const OUTPUT_BINDING: u32 = 2u;

struct Params { count: u32, slabs: u32, pixels: u32, channels: u32, y_at: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> slabs: array<f32>;
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_slabs(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    var sum = 0.0;
    for (var slab = 0u; slab < params.slabs; slab++) { sum += slabs[slab * params.count + at]; }
    output[params.y_at + at] = finished(sum, at / params.pixels % params.channels);
}
