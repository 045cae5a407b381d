// The sum over each team of `lanes` neighbouring threads, for the first of them. `lanes` is a power of two.
var<workgroup> wg_sums: array<f32, WORKGROUP_SIZE>;

fn join_lanes(x: f32, invocation: u32, lanes: u32) -> f32 {
    // Other threads may still read the result of an earlier call.
    workgroupBarrier();
    wg_sums[invocation] = x;
    for (var stride = lanes / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if invocation % lanes < stride {
            wg_sums[invocation] += wg_sums[invocation + stride];
        }
    }
    return wg_sums[invocation];
}
