// Scan over a workgroup: Kogge-Stone between two buffers, so that a step needs one barrier. All lanes have read the
// results of an earlier call before the next writes.
var<workgroup> wg_items: array<Item, 2u * WORKGROUP_SIZE>;

fn workgroup_scan(x: Item, lane: u32) -> Span {
    var mine = x;
    var origin = 0u;
    wg_items[lane] = mine;
    for (var stride = 1u; stride < WORKGROUP_SIZE; stride *= 2u) {
        workgroupBarrier();
        if lane >= stride { mine = join(wg_items[origin + lane - stride], mine); }
        origin = WORKGROUP_SIZE - origin;
        wg_items[origin + lane] = mine;
    }
    workgroupBarrier();
    var before = nothing();
    if lane > 0u { before = wg_items[origin + lane - 1u]; }
    return Span(before, wg_items[origin + WORKGROUP_SIZE - 1u]);
}
