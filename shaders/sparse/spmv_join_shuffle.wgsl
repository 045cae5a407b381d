// The sum over each team of `lanes` neighbouring lanes of a subgroup. `lanes` is a power of two.
enable subgroups;

fn join_lanes(x: f32, invocation: u32, lanes: u32) -> f32 {
    var total = x;
    for (var mask = lanes / 2u; mask > 0u; mask /= 2u) {
        total += subgroupShuffleXor(total, mask);
    }
    return total;
}
