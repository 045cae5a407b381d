// advance_all of scan_advance, for items of several words or costly joins: lanes swap halves of their totals with
// neighbours and join pairs, as G. Blelloch (1990) climbs a tree, so that after LEVELS levels few are left to scan by
// Kogge-Stone; then they descend. 8 totals take 28 shuffles and 26 joins, in place of 56 each.
// The importer declares VEC4S, and imports subgroup/scan.

// A subgroup has 4 threads or more.
const LEVELS: u32 = min(VEC4S / 2u, 2u);

fn item_across(x: Item, mask: u32) -> Item {
#if SEGMENTED
    return Item(subgroupShuffleXor(x.value, mask), subgroupShuffleXor(x.head, mask));
#else
    return subgroupShuffleXor(x, mask);
#endif
}

fn advance_all(run: ptr<function, Item>, totals: array<Item, VEC4S>, lane: u32, size: u32) -> array<Item, VEC4S> {
#for i in VEC4S
    let sum_0_{i} = totals[{i}];
#end
    // Of a pair of totals the lane keeps one and sends one; it then has that one of two lanes.
#for l in LEVELS
    let odd_{l} = (lane & {1 << l}u) != 0u;
#for i in VEC4S >> (l + 1)
    let own_{l}_{i} = either_item(sum_{l}_{2 * i}, sum_{l}_{2 * i + 1}, odd_{l});
    let got_{l}_{i} = item_across(either_item(sum_{l}_{2 * i + 1}, sum_{l}_{2 * i}, odd_{l}), {1 << l}u);
    let low_{l}_{i} = either_item(own_{l}_{i}, got_{l}_{i}, odd_{l});
    let sum_{l + 1}_{i} = join(low_{l}_{i}, either_item(got_{l}_{i}, own_{l}_{i}, odd_{l}));
#end
#end
    // Lanes that have the same total of all come together; `rank` is where this lane's has gone.
    let width = size >> LEVELS;
    let partner = ((lane & (width - 1u)) << LEVELS) | (lane >> countTrailingZeros(width));
    let rank = (lane & ((1u << LEVELS) - 1u)) * width + (lane >> LEVELS);
#for t in VEC4S >> LEVELS
    let step_0_{t} = item_of_lane(sum_{LEVELS}_{t}, partner);
#end
#for s in 5
#for t in VEC4S >> LEVELS
    let below_{s}_{t} = item_from_below(step_{s}_{t}, {1 << s}u);
#end
#for t in VEC4S >> LEVELS
    let step_{s + 1}_{t} = either_item(step_{s}_{t}, join(below_{s}_{t}, step_{s}_{t}), lane >= {1 << s}u);
#end
#end
#for t in VEC4S >> LEVELS
    var scan_{t} = step_5_{t};
#end
    for (var delta = 32u; delta < size; delta *= 2u) {
#for t in VEC4S >> LEVELS
        scan_{t} = either_item(scan_{t}, join(item_from_below(scan_{t}, delta), scan_{t}), lane >= delta);
#end
    }
#for t in VEC4S >> LEVELS
    let all_{t} = item_of_lane(scan_{t}, size - 1u);
    let prior_{t} = either_item(item_of_lane(scan_{t}, max(rank, 1u) - 1u), nothing(), rank == 0u);
    let before_{LEVELS}_{t} = join(*run, prior_{t});
    *run = join(*run, all_{t});
#end
#for k in LEVELS
#for l in LEVELS - 1 - k..LEVELS - k
#for i in VEC4S >> (l + 1)
    let after_{l}_{i} = join(before_{l + 1}_{i}, low_{l}_{i});
    let mine_{l}_{i} = either_item(before_{l + 1}_{i}, after_{l}_{i}, odd_{l});
    let theirs_{l}_{i} = item_across(either_item(after_{l}_{i}, before_{l + 1}_{i}, odd_{l}), {1 << l}u);
    let before_{l}_{2 * i} = either_item(mine_{l}_{i}, theirs_{l}_{i}, odd_{l});
    let before_{l}_{2 * i + 1} = either_item(theirs_{l}_{i}, mine_{l}_{i}, odd_{l});
#end
#end
#end
    return array<Item, VEC4S>(
#for i in VEC4S
        before_0_{i},
#end
    );
}
