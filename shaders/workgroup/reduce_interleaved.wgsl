// Tree over a workgroup, strides 1, 2, 4, ...: neighbours first, so the order of operands is kept; active threads thin
// out within every subgroup (divergent). Lane 0 gets the total.
var<workgroup> wg_acc: array<Acc, WORKGROUP_SIZE>;

fn workgroup_reduce(x: Acc, lane: u32) -> Acc {
    wg_acc[lane] = x;
    for (var stride = 1u; stride < WORKGROUP_SIZE; stride *= 2u) {
        workgroupBarrier();
        if lane % (2u * stride) == 0u { wg_acc[lane] = op_combine(wg_acc[lane], wg_acc[lane + stride]); }
    }
    return wg_acc[lane];
}
