// Last step of compaction: a workgroup ranks the elements of its tile again and hands each to `emit`, with
// the number of kept elements before it in the whole array.
#import primitives/compact_tile
#if SUBGROUPS
#import primitives/compact_emit
#endif

const COUNTS_BINDING: u32 = 3u;
const BLOCK: u32 = 2048u; // counts a block of compact_scan
@group(0) @binding(COUNTS_BINDING) var<storage, read> counts: array<u32>;
@group(0) @binding(COUNTS_BINDING + 1u) var<storage, read> sums: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn scatter_kept(
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
    if tile >= params.tiles {
        return;
    }
    let before = counts[tile] + sums[tile / BLOCK];
#if SUBGROUPS
    let items = load_tile(tile, sub_lane, sub_size, sub_id);
    emit_tile(items, before + count_tile(items, sub_lane, sub_size, sub_id, sub_count).x, sub_lane);
#else
    let items = load_tile(tile, lane);
    let total = count_tile(items, lane);
    for (var j = 0u; j < ITEMS; j++) {
        let at = items.first + j * items.stride;
        let kept = ((items.kept >> j) & 1u) != 0u;
        if at < params.n {
            emit(at, items.bits[j / 4u][j % 4u], before + rank_in_tile(j * WORKGROUP_SIZE + lane), kept);
        }
    }
#endif
}
