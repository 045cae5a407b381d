// The sum over each team of LANES neighbouring invocations, for the first of them.
var<workgroup> wg_sums: array<f32, WORKGROUP_SIZE>;

fn join_lanes(x: f32, invocation: u32) -> f32 {
    wg_sums[invocation] = x;
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if invocation % LANES < stride {
            wg_sums[invocation] += wg_sums[invocation + stride];
        }
    }
    return wg_sums[invocation];
}
