// The sum over each team of LANES neighbouring lanes of a subgroup.
enable subgroups;

fn join_lanes(x: f32, invocation: u32) -> f32 {
    var total = x;
    for (var mask = LANES / 2u; mask > 0u; mask /= 2u) {
        total += subgroupShuffleXor(total, mask);
    }
    return total;
}
