// Each subgroup reduces by shuffles, then the totals of subgroups are reduced the same way: one barrier. Subgroups may
// have any size: if there are more of them than lanes, a loop sums them first. Every lane gets the total.
#import subgroup/reduce

var<workgroup> wg_acc: array<Acc, WORKGROUP_SIZE>;

fn workgroup_reduce(x: Acc, lane: u32, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> Acc {
    let mine = subgroup_reduce(x, sub_size);
    if sub_lane == 0u { wg_acc[sub_id] = mine; }
    workgroupBarrier();
    var total = op_identity();
    for (var i = sub_lane; i < sub_count; i += sub_size) { total = op_combine(total, wg_acc[i]); }
    return subgroup_reduce(total, sub_size);
}
