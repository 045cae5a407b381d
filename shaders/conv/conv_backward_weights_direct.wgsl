// The gradient of a layer with respect to its weights, by the definition, over a slice of the outputs of all
// images. Each slice has a slab.
// One thread computes one weight of a slab; a workgroup WORKGROUP_SIZE of them.
#import conv/conv_input

const SLICE: u32 = 1u;
@group(0) @binding(2) var<storage, read> gradients: array<T>;
@group(0) @binding(3) var<storage, read_write> slabs: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_backward_weights_direct(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = params.first + workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    let filters = params.groups * params.channels_out;
    let weights = filters * params.channels_in * params.r * params.s;
    let place = at % weights;
    let b = place % params.s * params.dilation_w - params.pad_w;
    let a = place / params.s % params.r * params.dilation_h - params.pad_h;
    let row = place / params.s / params.r;
    let filter_ = row / params.channels_in;
    let channel = filter_ / params.channels_out * params.channels_in + row % params.channels_in;
    let pixels = params.p * params.q;
    let begin = at / weights * SLICE;
    let end = min(begin + SLICE, params.images * pixels);
    var sum = 0.0;
    for (var k = begin; k < end; k++) {
        let image = k / pixels;
#if LAST
        let plane = params.x_at + image * params.groups * params.channels_in * params.h * params.w + channel;
#else
        let plane = params.x_at + (image * params.groups * params.channels_in + channel) * params.h * params.w;
#endif
        let y = k / params.q % params.p * params.stride_h + a;
        let column = k % params.q * params.stride_w + b;
#if LAST
        let gradient = f32(gradients[params.y_at + k * filters + filter_]);
#else
        let gradient = f32(gradients[params.y_at + (image * filters + filter_) * pixels + k % pixels]);
#endif
        sum += gradient * cell(plane, y, column);
    }
    slabs[at] = sum;
}
