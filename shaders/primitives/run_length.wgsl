// Writes the value and length of each run. A head ends the run before it, which began at the head before: that of a
// lane or subgroup below, or of an earlier bit. If the tile has none, the last head of an earlier tile has stored its
// position as the length; run_length_close subtracts it.
#import primitives/compact_scatter
#import primitives/compact_store

const OUTPUT_BINDING: u32 = 5u;
@group(0) @binding(OUTPUT_BINDING + 1u) var<storage, read_write> lengths: array<u32>;
// Of each tile: the number of runs before its first head, 0 if it has none; and the place of that head.
@group(0) @binding(OUTPUT_BINDING + 2u) var<storage, read_write> edges: array<u32>;

var<private> tile_of_runs: u32;
// Runs up to the end of the tile.
var<private> runs_so_far: u32;

fn begin_runs(tile: u32, before: u32, heads: u32, lane: u32) {
    tile_of_runs = tile;
    runs_so_far = before + heads;
    if lane == 0u { edges[2u * tile] = select(0u, before, heads > 0u); }
#if SUBGROUPS
    var last = 0u;
    for (var i = place_in_subgroup; i < subgroup_of_runs; i += lanes) { last = max(last, wg_last_heads[i]); }
    last_head = subgroupMax(last);
#endif
}

// Places of heads are counted from 1 on here; 0 is none in the tile.
#if SUBGROUPS
// The last head of each subgroup's run of the tile.
var<workgroup> wg_last_heads: array<u32, WORKGROUP_SIZE>;
var<private> subgroup_of_runs: u32;
// The last head of the tile so far.
var<private> last_head: u32;

fn note_heads(items: Items, sub_lane: u32, sub_id: u32) {
    let last = items.first + items.stride * (31u - countLeadingZeros(items.kept | 1u)) + 1u;
    let last_of_all = subgroupMax(select(0u, last, items.kept != 0u));
    subgroup_of_runs = sub_id;
    if sub_lane == 0u { wg_last_heads[sub_id] = last_of_all; }
}

// The highest lane, counted from 1 on.
#if LARGE_SUBGROUPS
fn highest(some: Lanes) -> u32 {
    let bits = vec4<u32>(32u, 64u, 96u, 128u) - countLeadingZeros(some);
    let each = select(vec4<u32>(0u), bits, some != vec4<u32>(0u));
    return max(max(each.x, each.y), max(each.z, each.w));
}
#else
fn highest(some: Lanes) -> u32 { return 32u - countLeadingZeros(some); }
#endif

fn head_before(at: u32, kept: bool) -> u32 {
    let heads = ballot(kept);
    let lower = highest(heads & below(place_in_subgroup));
    let last = highest(heads);
    let row = at - place_in_subgroup;
    let before = select(last_head, row + lower, lower > 0u);
    last_head = select(last_head, row + last, last > 0u);
    return before;
}
#else
fn head_before(at: u32, kept: bool) -> u32 {
    if !kept { return 0u; }
    let begin = tile_of_runs * TILE;
    var word = (at - begin) / 32u;
    var mask = atomicLoad(&wg_masks[word]) & ((1u << ((at - begin) % 32u)) - 1u);
    // A gap without heads is passed once, by the head that ends it.
    while mask == 0u && word > 0u {
        word -= 1u;
        mask = atomicLoad(&wg_masks[word]);
    }
    return select(0u, begin + 32u * word + 32u - countLeadingZeros(mask), mask != 0u);
}
#endif

fn emit(at: u32, bits: u32, rank: u32, kept: bool) {
    store(rank, bits, kept);
    let before = head_before(at, kept);
    if kept {
        if before > 0u { lengths[rank - 1u] = at + 1u - before; } else { edges[2u * tile_of_runs + 1u] = at; }
        if rank + 1u == runs_so_far { lengths[rank] = at; }
    }
}
