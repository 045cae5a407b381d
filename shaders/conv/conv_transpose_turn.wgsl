// The weights of a correlation in the order M, C / groups, R, S. For the gradient of a layer with respect to x input
// and output channels are swapped, and windows turned.
// One thread moves one weight; a workgroup WORKGROUP_SIZE of them.
#import conv/conv_params
#import conv/conv_backward_data_weight as weight

@group(0) @binding(2) var<storage, read_write> turned: array<T>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_transpose_turn(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = params.first + workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    let taps = params.r * params.s;
    let row = at / taps / params.channels_in;
    let to = row % params.channels_out;
    turned[at] = T(weight(row / params.channels_out, to, at / taps % params.channels_in, at % taps));
}
