// The gradient of batch norm in training by x, from the sums over each channel. One thread computes one item.
#import workgroup/index
#import nn/items

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    planes: u32,
    len: u32, // elements of a plane
    origin: u32,
    channels: u32,
    count: f32, // elements of a channel
    eps: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<Item>;
@group(0) @binding(2) var<storage, read> gamma: array<f32>;
@group(0) @binding(3) var<storage, read> gradients: array<Item>;
@group(0) @binding(4) var<storage, read> means: array<f32>;
@group(0) @binding(5) var<storage, read> variances: array<f32>;
@group(0) @binding(6) var<storage, read> dgamma: array<f32>;
@group(0) @binding(7) var<storage, read> dbeta: array<f32>;
@group(0) @binding(8) var<storage, read_write> output: array<Item>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn batch_norm_backward(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let len = params.len / WIDTH;
    if i >= params.planes * len {
        return;
    }
    let channel = i / len % params.channels;
    let factor = inverseSqrt(variances[channel] + params.eps);
    let at = params.origin / WIDTH + i;
    let normed = (input[at] - Item(means[channel])) * factor;
    let pull = normed * (dgamma[channel] / params.count) + Item(dbeta[channel] / params.count);
    output[at] = gamma[channel] * factor * (gradients[at] - pull);
}
