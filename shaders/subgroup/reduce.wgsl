// Butterfly over a subgroup of any size: every lane gets the total. For commutative operators.
enable subgroups;

fn subgroup_reduce(x: Acc, size: u32) -> Acc {
    var total = x;
    for (var mask = size / 2u; mask > 0u; mask /= 2u) {
        total = op_combine(total, subgroupShuffleXor(total, mask));
    }
    return total;
}
