// What look-back must know of compaction: it sums counts, and a tile can be counted by anyone.
#import primitives/scan_lookback

alias Acc = u32;
alias Item = u32;

fn op_identity() -> Acc { return 0u; }
fn op_combine(a: Acc, b: Acc) -> Acc { return a + b; }
fn value_of(x: Item) -> Acc { return x; }
fn has_head(x: Item) -> bool { return false; }

#if SUBGROUPS
fn total_of_tile(tile: u32, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> Item {
    let kept = count_items(first_item(tile, sub_lane, sub_size, sub_id), sub_size);
    return count_tile(kept, sub_lane, sub_size, sub_id, sub_count).y;
}
#else
var<workgroup> wg_other: atomic<u32>;

fn total_of_tile(tile: u32, lane: u32) -> Item {
    if lane == 0u {
        atomicStore(&wg_other, 0u);
    }
    workgroupBarrier();
    atomicAdd(&wg_other, count_items(tile * TILE + lane, WORKGROUP_SIZE));
    workgroupBarrier();
    return atomicLoad(&wg_other);
}
#endif
