// Shared by the kernels of stable compaction: a tile of ITEMS elements a thread, its kept elements, and their ranks in
// the tile. `keep4` decides for four elements at once.
// A subgroup (with SUBGROUPS) or the workgroup owns a run of the tile; lanes stride over it, so that loads coalesce.
// Ranks come from ballots, or from bit masks in workgroup memory.
#import dispatch/extent
#import element/u32 as element
#import primitives/keep_flagged as keep
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const VEC4S: u32 = 4u;
const ITEMS: u32 = 4u * VEC4S;
const TILE: u32 = WORKGROUP_SIZE * ITEMS;

struct Params {
    n: u32,          // elements
    tiles: u32,      // of TILE elements, the last one partly filled
    first_tile: u32, // these three for look-back: there is one dispatch, so 0, tiles, 0
    all_tiles: u32, piece: u32,
    others: u32,     // elements of a second array
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<u32>;

#put extent(params.n, 0u)

// The elements of a thread: item j is element `first + j * stride`.
struct Items {
    first: u32,
    stride: u32,
    kept: u32, // bit j: item j is kept
    bits: array<vec4<u32>, VEC4S>,
}

fn places(items: Items, q: u32) -> vec4<u32> {
    return items.first + items.stride * (vec4<u32>(0u, 1u, 2u, 3u) + 4u * q);
}

fn there(at: vec4<u32>) -> vec4<u32> { return min(at, vec4<u32>(max(extent(), 1u) - 1u)); }

fn load1(at: u32) -> u32 {
#if HALVES
    return extractBits(input[at / 2u], 16u * (at % 2u), 16u);
#else
    return input[at];
#endif
}

fn load4(at: vec4<u32>) -> vec4<u32> { return vec4<u32>(load1(at.x), load1(at.y), load1(at.z), load1(at.w)); }

fn mask4(kept: vec4<bool>) -> u32 { return dot(select(vec4<u32>(0u), vec4<u32>(1u, 2u, 4u, 8u), kept), vec4<u32>(1u)); }

fn kept4(at: vec4<u32>, bits: vec4<u32>) -> u32 { return mask4(keep4(there(at), bits) & (at < vec4<u32>(extent()))); }

fn kept_of(items: Items, q: u32, bits: vec4<u32>) -> u32 {
    return mask4(keep4(places(items, q), bits)) << (4u * q);
}

// One by one, and without a condition for each if the tile is full, so that all loads are in flight together.
fn load_items(first: u32, stride: u32, full: bool) -> Items {
    var items = Items(first, stride, 0u, array<vec4<u32>, VEC4S>());
#if ORDERED
    begin_keeping(first);
#endif
    if full {
#for i in VEC4S
        items.bits[{i}] = load4(places(items, {i}u));
#end
#for i in VEC4S
        items.kept |= kept_of(items, {i}u, items.bits[{i}]);
#end
        return items;
    }
#for i in VEC4S
    items.bits[{i}] = load4(there(places(items, {i}u)));
#end
#for i in VEC4S
    items.kept |= kept4(places(items, {i}u), items.bits[{i}]) << (4u * {i}u);
#end
    return items;
}

fn is_full(tile: u32) -> bool { return (tile + 1u) * TILE <= extent(); }

// How many of the same elements are kept. Not unrolled, since it is rarely wanted and would take registers from the
// rest.
fn count_items(first: u32, stride: u32) -> u32 {
    var kept = 0u;
#if ORDERED
    begin_keeping(first);
#endif
    let count = select(VEC4S, 0u, params.tiles == 0u);
    for (var q = 0u; q < count; q++) {
        let at = first + stride * (vec4<u32>(0u, 1u, 2u, 3u) + 4u * q);
        kept += countOneBits(kept4(at, load4(there(at))));
    }
    return kept;
}

#if SUBGROUPS
enable subgroups;

var<private> place_in_subgroup: u32;
var<private> lanes: u32;

fn first_item(tile: u32, sub_lane: u32, sub_size: u32, sub_id: u32) -> u32 {
    place_in_subgroup = sub_lane;
    lanes = sub_size;
    return tile * TILE + sub_id * sub_size * ITEMS + sub_lane;
}

fn load_tile(tile: u32, sub_lane: u32, sub_size: u32, sub_id: u32) -> Items {
    return load_items(first_item(tile, sub_lane, sub_size, sub_id), sub_size, is_full(tile));
}

#if LARGE_SUBGROUPS
alias Lanes = vec4<u32>;

fn ballot(yes: bool) -> Lanes { return subgroupBallot(yes); }
fn ones(lanes: Lanes) -> u32 { return dot(countOneBits(lanes), vec4<u32>(1u)); }

// Lanes below this one.
fn below(sub_lane: u32) -> Lanes {
    let bits = clamp(vec4<i32>(i32(sub_lane)) - vec4<i32>(0, 32, 64, 96), vec4<i32>(0), vec4<i32>(32));
    let some = (vec4<u32>(1u) << (vec4<u32>(bits) & vec4<u32>(31u))) - vec4<u32>(1u);
    return select(some, vec4<u32>(0xffffffffu), bits == vec4<i32>(32));
}
#else
alias Lanes = u32;

fn ballot(yes: bool) -> Lanes { return subgroupBallot(yes).x; }
fn ones(lanes: Lanes) -> u32 { return countOneBits(lanes); }
fn below(sub_lane: u32) -> Lanes { return (1u << sub_lane) - 1u; }
#endif

var<workgroup> wg_counts: array<u32, WORKGROUP_SIZE>;

// Kept elements before the subgroup's run, and of the whole tile, of which this thread has `kept`.
// All have read what an earlier call left before the next one begins.
fn count_tile(kept: u32, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> vec2<u32> {
    let own = subgroupAdd(kept);
    if sub_lane == 0u { wg_counts[sub_id] = own; }
    workgroupBarrier();
    var before = 0u;
    var all = 0u;
    for (var i = sub_lane; i < sub_count; i += sub_size) {
        let count = wg_counts[i];
        all += count;
        before += select(0u, count, i < sub_id);
    }
    return vec2<u32>(subgroupAdd(before), subgroupAdd(all));
}
#else
fn load_tile(tile: u32, lane: u32) -> Items { return load_items(tile * TILE + lane, WORKGROUP_SIZE, is_full(tile)); }

const WORDS: u32 = TILE / 32u;
// Bit e % 32 of word e / 32: element e of the tile is kept.
var<workgroup> wg_masks: array<atomic<u32>, WORDS>;
// Kept elements in the words up to each.
var<workgroup> wg_counts: array<u32, WORDS>;

// Fills both and gives the kept elements of the tile.
fn count_tile(items: Items, lane: u32) -> u32 {
    if lane < WORDS { atomicStore(&wg_masks[lane], 0u); }
    workgroupBarrier();
    for (var j = 0u; j < ITEMS; j++) {
        let e = j * WORKGROUP_SIZE + lane;
        atomicOr(&wg_masks[e / 32u], ((items.kept >> j) & 1u) << (e % 32u));
    }
    workgroupBarrier();
    var sum = 0u;
    if lane < WORDS {
        sum = countOneBits(atomicLoad(&wg_masks[lane]));
        wg_counts[lane] = sum;
    }
    for (var step = 1u; step < WORDS; step *= 2u) {
        workgroupBarrier();
        if lane < WORDS && lane >= step { sum += wg_counts[lane - step]; }
        workgroupBarrier();
        if lane < WORDS { wg_counts[lane] = sum; }
    }
    workgroupBarrier();
    return wg_counts[WORDS - 1u];
}

// Kept elements before element e of the tile.
fn rank_in_tile(e: u32) -> u32 {
    let mask = atomicLoad(&wg_masks[e / 32u]);
    let before = countOneBits(mask & ((1u << (e % 32u)) - 1u));
    return before + wg_counts[e / 32u] - countOneBits(mask);
}
#endif
