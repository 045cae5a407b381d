// Last step of compaction: a workgroup ranks the elements of its tile and hands each to `emit`, with the
// number of kept elements before it in the whole array, which earlier kernels counted (Blelloch, Prefix Sums
// and Their Applications, 1990). With ONCE there are no earlier ones: the workgroup looks back at the tiles
// before its own (scan_lookback).
#import primitives/compact_tile
#if SUBGROUPS
#import primitives/compact_emit
#endif
#if ONCE
#import primitives/compact_lookback
#endif

const COUNTS_BINDING: u32 = 3u;
#if ONCE
@group(0) @binding(COUNTS_BINDING + 1u) var<storage, read_write> total_kept: array<u32>;
#else
const BLOCK: u32 = 2048u; // counts a block of compact_scan
@group(0) @binding(COUNTS_BINDING) var<storage, read> counts: array<u32>;
@group(0) @binding(COUNTS_BINDING + 1u) var<storage, read> sums: array<u32>;
#endif

#if SUBGROUPS
#else
fn emit_four(items: Items, quad: u32, bits: vec4<u32>, before: u32, lane: u32) {
    let at = places(items, quad);
    emit_one(at.x, bits.x, items.kept, 4u * quad, before, lane);
    emit_one(at.y, bits.y, items.kept, 4u * quad + 1u, before, lane);
    emit_one(at.z, bits.z, items.kept, 4u * quad + 2u, before, lane);
    emit_one(at.w, bits.w, items.kept, 4u * quad + 3u, before, lane);
}

fn emit_one(at: u32, bits: u32, kept: u32, j: u32, before: u32, lane: u32) {
    emit(at, bits, before + rank_in_tile(j * WORKGROUP_SIZE + lane), ((kept >> j) & 1u) != 0u);
}
#endif

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
    var tile = workgroup_index(group);
    if tile >= params.tiles {
        return;
    }
#if TICKET
    tile = next_tile(lane);
#endif
#if SUBGROUPS
    let items = load_tile(tile, sub_lane, sub_size, sub_id);
#if RUNS
    note_heads(items, sub_lane, sub_id);
#endif
    let tally = count_tile(countOneBits(items.kept), sub_lane, sub_size, sub_id, sub_count);
#if ONCE
    let before = look_back(tile, tally.y, sub_lane, sub_size, sub_id, sub_count);
    if lane == 0u && tile + 1u == params.tiles {
        total_kept[0] = before + tally.y;
    }
#else
    let before = counts[tile] + sums[tile / BLOCK];
#endif
#if RUNS
    begin_runs(tile, before, tally.y, lane);
#endif
    emit_tile(items, before + tally.x, sub_lane);
#else
    let items = load_tile(tile, lane);
    let total = count_tile(items, lane);
#if ONCE
    let before = look_back(tile, total, lane);
    if lane == 0u && tile + 1u == params.tiles {
        total_kept[0] = before + total;
    }
#else
    let before = counts[tile] + sums[tile / BLOCK];
#endif
#if RUNS
    begin_runs(tile, before, total, lane);
#endif
#for i in QUADS
    emit_four(items, {i}u, items.bits[{i}], before, lane);
#end
#endif
}
