// Prefixes of one value of each thread of a subgroup: Kogge-Stone by shuffles, or the device's own sum.
//
//     fn subgroup_scan(x: Item, lane: u32, size: u32) -> Item     the values of all lanes up to this one
//     fn subgroup_before(scanned: Item, lane: u32) -> Item        from that, the values of all lanes before it
//
// You declare  `alias Item`, a scalar or vector; `fn nothing() -> Item` and `fn join(a: Item, b: Item) -> Item`,
//              associative.
// `lane`       is subgroup_invocation_id, `size` subgroup_size; all its threads take part.
// Order        operands are joined in the order of lanes.
// Costs        log2(size) shuffles; no memory, no barriers. The device needs subgroups.
// Call them    in uniform control flow.
enable subgroups;

fn item_of_lane(x: Item, lane: u32) -> Item {
#if SEGMENTED
    return Item(subgroupShuffle(x.value, lane), subgroupShuffle(x.head, lane));
#else
    return subgroupShuffle(x, lane);
#endif
}

fn item_from_below(x: Item, delta: u32) -> Item {
#if SEGMENTED
    return Item(subgroupShuffleUp(x.value, delta), subgroupShuffleUp(x.head, delta));
#else
    return subgroupShuffleUp(x, delta);
#endif
}

// `b` if `second`, else `a`. Both are there already: a select is faster than a branch.
fn either_item(a: Item, b: Item, second: bool) -> Item {
#if SEGMENTED
    return Item(select(a.value, b.value, second), select(a.head, b.head, second));
#else
    return select(a, b, second);
#endif
}

fn subgroup_scan(x: Item, lane: u32, size: u32) -> Item {
#if NATIVE_ADD
    return subgroupInclusiveAdd(x);
#else
    var scanned = x;
    for (var delta = 1u; delta < size; delta *= 2u) {
        let below = item_from_below(scanned, delta);
        scanned = either_item(scanned, join(below, scanned), lane >= delta);
    }
    return scanned;
#endif
}

// From an inclusive scan: what lies before the lane.
fn subgroup_before(scanned: Item, lane: u32) -> Item {
    return either_item(item_from_below(scanned, 1u), nothing(), lane == 0u);
}
