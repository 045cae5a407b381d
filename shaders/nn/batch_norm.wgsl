// Normalises each element by the mean, variance, scale and shift of its channel. A thread computes one item: an
// element, or with VECTORS a vec4 of one plane.
#import workgroup/index
#import nn/items
#import activation/none as activation

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    planes: u32,
    len: u32, // elements of a plane
    origin: u32,
    first: u32, // index of the first plane
    channels: u32,
    eps: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<Item>;
@group(0) @binding(2) var<storage, read> means: array<f32>;
@group(0) @binding(3) var<storage, read> variances: array<f32>;
@group(0) @binding(4) var<storage, read> gamma: array<f32>;
@group(0) @binding(5) var<storage, read> beta: array<f32>;
@group(0) @binding(6) var<storage, read_write> output: array<Item>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn batch_norm(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let len = params.len / WIDTH;
    if i >= params.planes * len {
        return;
    }
    let channel = (params.first + i / len) % params.channels;
    let factor = inverseSqrt(variances[channel] + params.eps) * gamma[channel];
    let at = params.origin / WIDTH + i;
    let y = four((input[at] - Item(means[channel])) * factor + Item(beta[channel]));
#if VECTORS
    output[at] = vec4(activate(y.x), activate(y.y), activate(y.z), activate(y.w));
#else
    output[at] = activate(y.x);
#endif
}
