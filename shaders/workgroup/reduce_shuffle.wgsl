// Tree over a workgroup in workgroup memory until one subgroup is left, which finishes by shuffles. All subgroups do
// the last step, since shuffles must stand in uniform flow. Every lane gets the total.
#import subgroup/reduce

var<workgroup> wg_acc: array<Acc, WORKGROUP_SIZE>;

fn workgroup_reduce(x: Acc, lane: u32, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> Acc {
    wg_acc[lane] = x;
    for (var stride = WORKGROUP_SIZE / 2u; stride >= sub_size; stride /= 2u) {
        workgroupBarrier();
        if lane < stride { wg_acc[lane] = op_combine(wg_acc[lane], wg_acc[lane + stride]); }
    }
    workgroupBarrier();
    return subgroup_reduce(wg_acc[sub_lane], sub_size);
}
