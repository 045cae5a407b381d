// Scan over a workgroup: P. Kogge and H. Stone (1973): in step s each lane joins the value 2^s before it. n log2 n - (n
// - 1) joins, two barriers a step. All lanes have read the results of an earlier call before the next writes.
var<workgroup> wg_items: array<Item, WORKGROUP_SIZE>;

fn workgroup_scan(x: Item, lane: u32) -> Span {
    var mine = x;
    wg_items[lane] = mine;
    for (var stride = 1u; stride < WORKGROUP_SIZE; stride *= 2u) {
        workgroupBarrier();
        if lane >= stride { mine = join(wg_items[lane - stride], mine); }
        workgroupBarrier();
        wg_items[lane] = mine;
    }
    workgroupBarrier();
    var before = nothing();
    if lane > 0u { before = wg_items[lane - 1u]; }
    return Span(before, wg_items[WORKGROUP_SIZE - 1u]);
}
