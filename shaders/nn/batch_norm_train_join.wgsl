// Joins the states of the parts of a channel, one workgroup for each. Writes mean and variance, and with RUNNING the
// running ones, IN_PLACE or apart; with GRADIENTS the gradients of gamma and beta.
#import nn/batch_norm_train_states

@group(0) @binding(1) var<storage, read> partials: array<vec4<f32>>;
// Mean and variance, or the gradients of beta and gamma.
@group(0) @binding(2) var<storage, read_write> firsts: array<f32>;
@group(0) @binding(3) var<storage, read_write> seconds: array<f32>;
#if IN_PLACE
@group(0) @binding(4) var<storage, read_write> running_mean: array<f32>;
@group(0) @binding(5) var<storage, read_write> running_variance: array<f32>;
#else
#if RUNNING
@group(0) @binding(4) var<storage, read> running_mean: array<f32>;
@group(0) @binding(5) var<storage, read> running_variance: array<f32>;
@group(0) @binding(6) var<storage, read_write> new_running_mean: array<f32>;
@group(0) @binding(7) var<storage, read_write> new_running_variance: array<f32>;
#endif
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn batch_norm_train_join(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let channel = workgroup_index(group);
    if channel >= params.channels {
        return;
    }
    var state = vec4<f32>();
    for (var part = lane; part < params.all_parts; part += WORKGROUP_SIZE) {
        state = joined(state, partials[channel * params.all_parts + part]);
    }
    state = join_states(lane, state);
    if lane == 0u {
#if GRADIENTS
        firsts[channel] = state.x;
        seconds[channel] = state.y;
#else
        let variance = state.z / params.count;
        firsts[channel] = state.y;
        seconds[channel] = variance;
#endif
#if RUNNING
        let kept = 1.0 - params.momentum;
        let new_mean = kept * running_mean[channel] + params.momentum * state.y;
        let averaged = variance * params.correction;
        let new_variance = kept * running_variance[channel] + params.momentum * averaged;
#if IN_PLACE
        running_mean[channel] = new_mean;
        running_variance[channel] = new_variance;
#else
        new_running_mean[channel] = new_mean;
        new_running_variance[channel] = new_variance;
#endif
#endif
    }
}
