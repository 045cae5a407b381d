// The middle of a three-kernel scan: one workgroup replaces the totals of all tiles, in place, by the prefix of each
// tile. It walks them in steps of ITEMS_PER_THREAD a thread.
#import primitives/scan_element
#import workgroup/scan_kogge_stone_double

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS_PER_THREAD: u32 = 8u;

@group(0) @binding(1) var<storage, read_write> totals: array<Item>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn scan_totals(@builtin(local_invocation_index) lane: u32) {
    var carry = nothing();
    for (var base = 0u; base < params.all_tiles; base += WORKGROUP_SIZE * ITEMS_PER_THREAD) {
        let begin = min(base + lane * ITEMS_PER_THREAD, params.all_tiles);
        let end = min(begin + ITEMS_PER_THREAD, params.all_tiles);
        var mine = nothing();
        for (var tile = begin; tile < end; tile++) { mine = join(mine, totals[tile]); }
        let span = workgroup_scan(mine, lane);
        var run = join(carry, span.before);
        for (var tile = begin; tile < end; tile++) {
            let next = join(run, totals[tile]);
            totals[tile] = run;
            run = next;
        }
        carry = join(carry, span.all);
        workgroupBarrier();
    }
}
