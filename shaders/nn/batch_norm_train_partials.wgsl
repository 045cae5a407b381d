// The states of the parts of each channel of a batch of images. A workgroup takes one part: `block` items that follow
// each other through the planes of a channel, each thread every 256th.
#import nn/items
#import nn/batch_norm_train_states

@group(0) @binding(1) var<storage, read> input: array<Item>;
@group(0) @binding(2) var<storage, read_write> partials: array<vec4<f32>>;
#if GRADIENTS
@group(0) @binding(3) var<storage, read> gradients: array<Item>;
@group(0) @binding(4) var<storage, read> means: array<f32>;
@group(0) @binding(5) var<storage, read> variances: array<f32>;

fn total(x: Item) -> f32 { return dot(four(x), vec4(1.0)); }
#else
fn state_of(x: Item) -> vec4<f32> {
#if VECTORS
    let mean = (x.x + x.y + x.z + x.w) * 0.25;
    let apart = x - mean;
    return vec4(4.0, mean, dot(apart, apart), 0.0);
#else
    return vec4(1.0, x, 0.0, 0.0);
#endif
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn batch_norm_train_partials(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = workgroup_index(group);
    if index >= params.channels * params.parts {
        return;
    }
    let channel = index / params.parts;
    let part = index % params.parts;
    let len = params.len / WIDTH;
    let end = min((part + 1u) * params.block, params.images * len);
#if GRADIENTS
    let mean = means[channel];
    let factor = inverseSqrt(variances[channel] + params.eps);
#endif
    var state = vec4<f32>();
    for (var i = part * params.block + lane; i < end; i += WORKGROUP_SIZE) {
        let at = params.origin / WIDTH + (i / len * params.channels + channel) * len + i % len;
#if GRADIENTS
        let g = gradients[at];
        state += vec4(total(g), total(g * ((input[at] - Item(mean)) * factor)), 0.0, 0.0);
#else
        state = joined(state, state_of(input[at]));
#endif
    }
    state = join_states(lane, state);
    if lane == 0u {
        partials[channel * params.all_parts + params.first_part + part] = state;
    }
}
