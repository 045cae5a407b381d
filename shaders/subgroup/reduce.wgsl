// Reduces one value of each thread of a subgroup; every thread gets the result. A butterfly.
//
//     fn subgroup_reduce(x: Acc, size: u32) -> Acc
//
// You declare  `alias Acc`, a scalar or vector; `fn op_combine(a: Acc, b: Acc) -> Acc`, associative and commutative.
// `size`       is subgroup_size, a power of two; all its threads take part.
// Costs        log2(size) shuffles; no memory, no barriers. The device needs subgroups.
// Call it      in uniform control flow.
enable subgroups;

fn subgroup_reduce(x: Acc, size: u32) -> Acc {
    var total = x;
    for (var mask = size / 2u; mask > 0u; mask /= 2u) {
        total = op_combine(total, subgroupShuffleXor(total, mask));
    }
    return total;
}
