// Sets the posts of batch_norm_train_resident to not ready, and copies the running statistics behind them. A thread
// writes one word.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    posts: u32,
    channels: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> running_mean: array<f32>;
@group(0) @binding(2) var<storage, read> running_variance: array<f32>;
@group(0) @binding(3) var<storage, read_write> output: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn batch_norm_train_open(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.posts + 2u * params.channels {
        return;
    }
    if i < params.posts {
        output[i] = 0u;
    } else if i < params.posts + params.channels {
        output[i] = bitcast<u32>(running_mean[i - params.posts]);
    } else {
        output[i] = bitcast<u32>(running_variance[i - params.posts - params.channels]);
    }
}
