// The gradient of a layer with respect to its bias, for each image: sums of the planes of dy, one slab for every
// image.
// A workgroup adds one plane, by strides and then a tree.
#import conv/conv_params

@group(0) @binding(1) var<storage, read> gradients: array<T>;
@group(0) @binding(2) var<storage, read_write> slabs: array<f32>;

var<workgroup> wg_sums: array<f32, WORKGROUP_SIZE>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_backward_weights_bias(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let plane = workgroup_index(workgroup);
    if plane >= params.count { return; }
    let pixels = params.p * params.q;
#if LAST
    let filters = params.groups * params.channels_out;
    let base = params.y_at + plane / filters * pixels * filters + plane % filters;
#else
    let base = params.y_at + plane * pixels;
#endif
    var sum = 0.0;
#if LAST
    for (var k = lane; k < pixels; k += WORKGROUP_SIZE) { sum += f32(gradients[base + k * filters]); }
#else
    for (var k = lane; k < pixels; k += WORKGROUP_SIZE) { sum += f32(gradients[base + k]); }
#endif
    wg_sums[lane] = sum;
    for (var stride = WORKGROUP_SIZE / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if lane < stride { wg_sums[lane] += wg_sums[lane + stride]; }
    }
    if lane == 0u { slabs[plane] = wg_sums[0]; }
}
