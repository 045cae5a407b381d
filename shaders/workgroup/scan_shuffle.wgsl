// Scan over a workgroup: subgroups scan by shuffles, then each of them scans all their totals: one barrier.
// Lanes count by subgroup: lane = sub_id * sub_size + sub_lane. Any subgroup size.
#import subgroup/scan

// A subgroup has 4 threads or more.
const MAX_SUBGROUPS: u32 = (WORKGROUP_SIZE + 3u) / 4u;
var<workgroup> wg_items: array<Item, MAX_SUBGROUPS>;

// Of subgroups that have `total` each. All have read what an earlier call left before the next one begins.
fn join_subgroups(total: Item, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> Span {
    if sub_lane == 0u { wg_items[sub_id] = total; }
    workgroupBarrier();
    var span = Span(nothing(), nothing());
    for (var base = 0u; base < sub_count; base += sub_size) {
        var x = nothing();
        if base + sub_lane < sub_count { x = wg_items[base + sub_lane]; }
        let scanned = subgroup_scan(x, sub_lane, sub_size);
        let before = item_of_lane(scanned, min(max(sub_id, base + 1u) - base, sub_size) - 1u);
        if sub_id > base { span.before = join(span.all, before); }
        span.all = join(span.all, item_of_lane(scanned, sub_size - 1u));
    }
    return span;
}

fn workgroup_scan(x: Item, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> Span {
    let scanned = subgroup_scan(x, sub_lane, sub_size);
    let total = item_of_lane(scanned, sub_size - 1u);
    var span = join_subgroups(total, sub_lane, sub_size, sub_id, sub_count);
    span.before = join(span.before, subgroup_before(scanned, sub_lane));
    return span;
}
