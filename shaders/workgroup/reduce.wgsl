// Reduces one value of each thread; every thread gets the result.
//
//     fn workgroup_reduce(x: Acc, lane: u32) -> Acc
//
// You declare  WORKGROUP_SIZE, any size; `alias Acc`, any type; `fn op_combine(a: Acc, b: Acc) -> Acc`, associative,
//              such as `#import op/add as op`.
// `lane`       is local_invocation_index.
// Order        operands are combined in the order of lanes: `op_combine` need not be commutative.
// Costs        WORKGROUP_SIZE values of workgroup memory, log2(WORKGROUP_SIZE) + 2 barriers.
// Call it      in uniform control flow, as often as you like. The result is uniform: you may branch on it.
var<workgroup> wg_reduce: array<Acc, WORKGROUP_SIZE>;

fn workgroup_reduce(x: Acc, lane: u32) -> Acc {
    wg_reduce[lane] = x;
    for (var stride = 1u; stride < WORKGROUP_SIZE; stride *= 2u) {
        workgroupBarrier();
        let left = 2u * stride * lane;
        if left + stride < WORKGROUP_SIZE {
            wg_reduce[left] = op_combine(wg_reduce[left], wg_reduce[left + stride]);
        }
    }
    return workgroupUniformLoad(&wg_reduce[0]);
}
