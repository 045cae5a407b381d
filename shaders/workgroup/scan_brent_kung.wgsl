// Scan over a workgroup: R. Brent and H. T. Kung (1982): totals up a tree, then prefixes down it. 2 (n - 1) - log2 n
// joins in 2 log2 n - 1 steps. All lanes have read the results of an earlier call before the next writes.
var<workgroup> wg_items: array<Item, WORKGROUP_SIZE>;

fn workgroup_scan(x: Item, lane: u32) -> Span {
    wg_items[lane] = x;
    for (var stride = 1u; stride < WORKGROUP_SIZE; stride *= 2u) {
        workgroupBarrier();
        let right = 2u * stride * (lane + 1u) - 1u;
        if right < WORKGROUP_SIZE { wg_items[right] = join(wg_items[right - stride], wg_items[right]); }
    }
    for (var stride = WORKGROUP_SIZE / 4u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        let left = 2u * stride * (lane + 1u) - 1u;
        if left + stride < WORKGROUP_SIZE {
            wg_items[left + stride] = join(wg_items[left], wg_items[left + stride]);
        }
    }
    workgroupBarrier();
    var before = nothing();
    if lane > 0u { before = wg_items[lane - 1u]; }
    return Span(before, wg_items[WORKGROUP_SIZE - 1u]);
}
