// Inclusive scan of items over a subgroup of any size: Kogge-Stone by shuffles, or the device's own sum.
// Must stand in uniform flow. The order of operands is kept.
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

fn subgroup_scan(x: Item, lane: u32, size: u32) -> Item {
#if NATIVE_ADD
    return subgroupInclusiveAdd(x);
#else
    var scanned = x;
    for (var delta = 1u; delta < size; delta *= 2u) {
        let below = item_from_below(scanned, delta);
        if lane >= delta {
            scanned = join(below, scanned);
        }
    }
    return scanned;
#endif
}

// From an inclusive scan: what lies before the lane.
fn subgroup_before(scanned: Item, lane: u32) -> Item {
    var below = item_from_below(scanned, 1u);
    if lane == 0u {
        below = nothing();
    }
    return below;
}
