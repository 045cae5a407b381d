// Tree over a workgroup, strides n/2, n/4, ...: active threads stay together, whole subgroups fall idle. For
// commutative operators. Lane 0 gets the total.
var<workgroup> wg_acc: array<Acc, WORKGROUP_SIZE>;

fn workgroup_reduce(x: Acc, lane: u32) -> Acc {
    wg_acc[lane] = x;
    for (var stride = WORKGROUP_SIZE / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if lane < stride { wg_acc[lane] = op_combine(wg_acc[lane], wg_acc[lane + stride]); }
    }
    return wg_acc[lane];
}
