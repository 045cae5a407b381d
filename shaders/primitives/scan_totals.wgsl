// The middle of a three-kernel scan: one workgroup replaces the totals of all tiles, in place, by the prefix of each
// tile. It walks them in steps of ITEMS_PER_THREAD a thread.
#import primitives/scan_element
#import workgroup/scan_kogge_stone_double

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS_PER_THREAD: u32 = 8u;

@group(0) @binding(1) var<storage, read_write> totals: array<u32>;

fn total(tile: u32) -> Item {
#if COUNTED
    return Item(bitcast<Acc>(totals[2u * tile]), totals[2u * tile + 1u]);
#else
    var head = false;
    if ITEM_WORDS == 2u { head = totals[ITEM_WORDS * tile + 1u] != 0u; }
    return item(bitcast<Acc>(totals[ITEM_WORDS * tile]), head);
#endif
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn scan_totals(@builtin(local_invocation_index) lane: u32) {
    var carry = nothing();
    for (var base = 0u; base < params.all_tiles; base += WORKGROUP_SIZE * ITEMS_PER_THREAD) {
        let begin = min(base + lane * ITEMS_PER_THREAD, params.all_tiles);
        let end = min(begin + ITEMS_PER_THREAD, params.all_tiles);
        var mine = nothing();
        for (var tile = begin; tile < end; tile++) { mine = join(mine, total(tile)); }
        let span = workgroup_scan(mine, lane);
        var run = join(carry, span.before);
        for (var tile = begin; tile < end; tile++) {
            let next = join(run, total(tile));
            totals[ITEM_WORDS * tile] = bitcast<u32>(value_of(run));
#if COUNTED
            totals[2u * tile + 1u] = run.head;
#endif
            run = next;
        }
        carry = join(carry, span.all);
        workgroupBarrier();
    }
}
