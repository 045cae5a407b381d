// Last step of compaction (Blelloch, Prefix Sums and Their Applications, 1990): one workgroup ranks the elements of its
// tile and passes each to `emit`, with the number of kept elements before it in the whole array. Earlier kernels
// counted those; with ONCE there are none, and the workgroup looks back at the tiles before its own (scan_lookback).
#import primitives/compact_tile
#if SUBGROUPS
// Hands each element to `emit`, with the kept elements before it; `before` is the count before the subgroup's run.
// Also what lies beyond the end, which is not kept.
fn emit_tile(items: Items, before: u32, sub_lane: u32) {
    let lower = below(sub_lane);
    var run = before;
    // One by one: in a loop the elements would have to lie in memory.
#for i in VEC4S
    run = emit_vec4(items, {i}u, items.bits[{i}], run, lower);
#end
}

fn emit_vec4(items: Items, q: u32, bits: vec4<u32>, before: u32, lower: Lanes) -> u32 {
    let at = places(items, q);
    let kept = items.kept >> (4u * q);
    var run = before;
    run = emit_one(at.x, bits.x, (kept & 1u) != 0u, run, lower);
    run = emit_one(at.y, bits.y, (kept & 2u) != 0u, run, lower);
    run = emit_one(at.z, bits.z, (kept & 4u) != 0u, run, lower);
    return emit_one(at.w, bits.w, (kept & 8u) != 0u, run, lower);
}

fn emit_one(at: u32, bits: u32, kept: bool, before: u32, lower: Lanes) -> u32 {
    let mask = ballot(kept);
    emit(at, bits, before + ones(mask & lower), kept);
    return before + ones(mask);
}
#endif
#if ONCE
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
    if lane == 0u { atomicStore(&wg_other, 0u); }
    workgroupBarrier();
    atomicAdd(&wg_other, count_items(tile * TILE + lane, WORKGROUP_SIZE));
    workgroupBarrier();
    return atomicLoad(&wg_other);
}
#endif
#endif

const COUNTS_BINDING: u32 = 3u;
#if ONCE
@group(0) @binding(COUNTS_BINDING + 1u) var<storage, read_write> total_kept: array<u32>;
#else
const BLOCK: u32 = 2048u; // counts a block of compact_scan
@group(0) @binding(COUNTS_BINDING) var<storage, read> counts: array<u32>;
@group(0) @binding(COUNTS_BINDING + 1u) var<storage, read> sums: array<u32>;
#endif

#if !SUBGROUPS
fn emit_vec4(items: Items, q: u32, bits: vec4<u32>, before: u32, lane: u32) {
    let at = places(items, q);
    emit_one(at.x, bits.x, items.kept, 4u * q, before, lane);
    emit_one(at.y, bits.y, items.kept, 4u * q + 1u, before, lane);
    emit_one(at.z, bits.z, items.kept, 4u * q + 2u, before, lane);
    emit_one(at.w, bits.w, items.kept, 4u * q + 3u, before, lane);
}

fn emit_one(at: u32, bits: u32, kept: u32, j: u32, before: u32, lane: u32) {
    emit(at, bits, before + rank_in_tile(j * WORKGROUP_SIZE + lane), ((kept >> j) & 1u) != 0u);
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn compact_scatter(
#put thread_builtins(lane, SUBGROUPS)
) {
    var tile = workgroup_index(group);
    if tile >= params.tiles { return; }
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
    if lane == 0u && tile + 1u == params.tiles { total_kept[0] = before + tally.y; }
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
    if lane == 0u && tile + 1u == params.tiles { total_kept[0] = before + total; }
#else
    let before = counts[tile] + sums[tile / BLOCK];
#endif
#if RUNS
    begin_runs(tile, before, total, lane);
#endif
#for i in VEC4S
    emit_vec4(items, {i}u, items.bits[{i}], before, lane);
#end
#endif
}
