// A step of the scan of a tile that invocations hold in several parts.

// Joins a quad's total to the run: of the subgroup, or of the invocation alone. What lay before it there.
fn advance(run: ptr<function, Item>, x: Item, sub_lane: u32, sub_size: u32) -> Item {
#if SUBGROUPS
    let scanned = subgroup_scan(x, sub_lane, sub_size);
    let before = join(*run, subgroup_before(scanned, sub_lane));
    *run = join(*run, item_of_lane(scanned, sub_size - 1u));
#else
    let before = *run;
    *run = join(before, x);
#endif
    return before;
}
