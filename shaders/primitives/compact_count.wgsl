// First step of compaction: one workgroup counts the kept elements of its tile.
#import primitives/compact_tile

const COUNTS_BINDING: u32 = 3u;
@group(0) @binding(COUNTS_BINDING) var<storage, read_write> counts: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn compact_count(
#put thread_builtins(lane, SUBGROUPS)
) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
#if SUBGROUPS
    let kept = countOneBits(load_tile(tile, sub_lane, sub_size, sub_id).kept);
    let total = count_tile(kept, sub_lane, sub_size, sub_id, sub_count).y;
#else
    let total = count_tile(load_tile(tile, lane), lane);
#endif
    if lane == 0u { counts[tile] = total; }
}
