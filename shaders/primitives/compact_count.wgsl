// First step of compaction: one workgroup counts the kept elements of its tile.
#import primitives/compact_tile

const COUNTS_BINDING: u32 = 3u;
@group(0) @binding(COUNTS_BINDING) var<storage, read_write> counts: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn compact_count(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
#if SUBGROUPS
    @builtin(subgroup_invocation_id) sub_lane: u32,
    @builtin(subgroup_size) sub_size: u32,
    @builtin(subgroup_id) sub_id: u32,
    @builtin(num_subgroups) sub_count: u32,
#endif
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
