// advance_all of scan_advance, for values of one word with heads: ballots tell how far back a lane's segment reaches,
// so that only values are shuffled. All totals take a step together.
// The importer declares VEC4S, and imports scan_element.

// One more than the last lane with a head, of the lanes that `mask` has in ballot word `word` and of all before; or 0.
fn last_head(heads: vec4<u32>, word: u32, mask: u32) -> u32 {
    var w = word;
    var part = heads[w] & mask;
    while part == 0u && w > 0u {
        w -= 1u;
        part = heads[w];
    }
    return 32u * w + firstLeadingBit(part) + 1u;
}

fn advance_all(run: ptr<function, Item>, totals: array<Item, VEC4S>, lane: u32, size: u32) -> array<Item, VEC4S> {
    var before: array<Item, VEC4S>;
    let word = lane / 32u;
    let bit = 1u << (lane % 32u);
#for i in VEC4S
    let heads_{i} = subgroupBallot(has_head(totals[{i}]));
    let reach_{i} = lane + 1u - max(last_head(heads_{i}, word, 2u * bit - 1u), 1u);
    let step_0_{i} = value_of(totals[{i}]);
#end
#for s in 5
#for i in VEC4S
    let below_{s}_{i} = subgroupShuffleUp(step_{s}_{i}, {1 << s}u);
#end
#for i in VEC4S
    let step_{s + 1}_{i} = select(step_{s}_{i}, op_combine(below_{s}_{i}, step_{s}_{i}), reach_{i} >= {1 << s}u);
#end
#end
#for i in VEC4S
    var scan_{i} = step_5_{i};
#end
    for (var delta = 32u; delta < size; delta *= 2u) {
#for i in VEC4S
        scan_{i} = select(scan_{i}, op_combine(subgroupShuffleUp(scan_{i}, delta), scan_{i}), reach_{i} >= delta);
#end
    }
#for i in VEC4S
    let prior_{i} = select(subgroupShuffleUp(scan_{i}, 1u), op_identity(), lane == 0u);
    before[{i}] = join(*run, item(prior_{i}, last_head(heads_{i}, word, bit - 1u) != 0u));
    *run = join(*run, item(subgroupShuffle(scan_{i}, size - 1u), any(heads_{i} != vec4<u32>())));
#end
    return before;
}
