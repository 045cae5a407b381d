// Unites two sorted multisets, in the order of their merge: Green, McColl, Bader, GPU Merge Path (2012). Of equal
// elements those of the first array come first. Each is a partner for one of the second, which is left out. A workgroup
// walks a tile of the merge, ITEMS elements a thread. set_union_tiles stores what is kept, behind earlier tiles: ONCE
// it looks back at their counts, else set_union_count counted. set_union_marks marks elements of the second array that
// have a partner or, ALONE, none. With HALVES elements are 16 bits, two in a word. LIMITED, both lengths lie behind the
// diagonals. With PLACES it also stores where kept elements stood.
#import primitives/merge_path
#import primitives/set_order
#if !SUBGROUPS
#import workgroup/scan
#endif

struct Params {
    firsts: u32,     // elements of the first array
    seconds: u32,    // elements of the second array
    tiles: u32,      // of TILE elements of the merge, the last one partly filled
    first_tile: u32, // these three for look-back: there is one dispatch, so 0, tiles, 0
    all_tiles: u32, piece: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> first: array<u32>;
@group(0) @binding(2) var<storage, read> second: array<u32>;
@group(0) @binding(3) var<storage, read> diagonals: array<u32>;
#if MARKS
// Bit i % 32 of word i / 32: element i of the second array is kept.
@group(0) @binding(4) var<storage, read_write> marks: array<atomic<u32>>;
#else
#if COUNT
@group(0) @binding(4) var<storage, read_write> counts: array<u32>;
#else
const OUTPUT_BINDING: u32 = 5u;
#if PLACES
@group(0) @binding(OUTPUT_BINDING + 2u) var<storage, read_write> places: array<u32>;
#endif
#if HALVES
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<atomic<u32>>;
#else
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<u32>;
#endif
@group(0) @binding(OUTPUT_BINDING + 1u) var<storage, read_write> count_out: array<u32>;
#if !ONCE
const BLOCK: u32 = 2048u; // counts a block of compact_scan
@group(0) @binding(4) var<storage, read> counts: array<u32>;
@group(0) @binding(5) var<storage, read> sums: array<u32>;
#endif
#endif
#endif

#if HALVES
#import primitives/half_words

fn a_at(i: u32) -> u32 { return half_of(first[i / 2u], i); }
fn b_at(j: u32) -> u32 { return half_of(second[j / 2u], j); }
#else
fn a_at(i: u32) -> u32 { return first[i]; }
fn b_at(j: u32) -> u32 { return second[j]; }
#endif
fn comes_before(x: u32, y: u32) -> bool { return order(x) < order(y); }

#if LIMITED
fn a_len() -> u32 { return diagonals[params.tiles]; }
fn b_len() -> u32 { return diagonals[params.tiles + 1u]; }
#else
fn a_len() -> u32 { return params.firsts; }
fn b_len() -> u32 { return params.seconds; }
#endif

// Whether the tile lies behind the end: tile 0 does not.
fn is_beyond_end(tile: u32) -> bool { return tile > 0u && tile * TILE >= a_len() + b_len(); }

alias Acc = u32;

fn op_identity() -> Acc { return 0u; }
fn op_combine(a: Acc, b: Acc) -> Acc { return a + b; }

fn tile_parts(tile: u32) -> Parts {
    let begin = tile * TILE;
    let len = a_len() + b_len();
    let count = min(TILE, len - begin);
    var end = a_len();
    if begin + count < len { end = diagonals[tile + 1u]; }
    return parts_of(begin, count, diagonals[tile], end);
}

// An element before the thread's place, of the second array or the first: those from `held` on lie in wg_words.
fn key_at(of_second: bool, at: u32, held: Parts) -> u32 {
    if of_second {
        if at >= held.b { return order(wg_words[held.of_a + at - held.b]); }
        return order(b_at(at));
    }
    if at >= held.a { return order(wg_words[at - held.a]); }
    return order(a_at(at));
}

// How many elements before `at` equal `key`, one behind the other.
fn equals_before(of_second: bool, at: u32, key: u32, held: Parts) -> u32 {
    var begin = at;
    var step = 1u;
    while step <= begin && key_at(of_second, begin - step, held) == key {
        begin -= step;
        step *= 2u;
    }
    while step > 1u {
        step /= 2u;
        if step <= begin && key_at(of_second, begin - step, held) == key { begin -= step; }
    }
    return at - begin;
}

// The last element of the first array, and how many equal ones there have no partner yet.
struct Open { key: u32, spare: u32 }

fn open_before(i: u32, j: u32, held: Parts) -> Open {
    if i == 0u { return Open(0u, 0u); }
    let key = key_at(false, i - 1u, held);
    let firsts = 1u + equals_before(false, i - 1u, key, held);
    return Open(key, firsts - min(firsts, equals_before(true, j, key, held)));
}

// The thread's elements, and a bit for each that is kept.
#if PLACES || MARKS
// Also a bit for each of the second array, and the thread's place in both arrays.
struct Walked { elements: array<u32, ITEMS>, kept: u32, second: u32, of_first: u32, of_second: u32 }
#else
struct Walked { elements: array<u32, ITEMS>, kept: u32 }
#endif

// All threads of the workgroup call it.
fn walk_tile(parts: Parts, lane: u32) -> Walked {
    // The elements before the tile.
    var of_first = 0u;
    if parts.a > 0u { of_first = a_at(parts.a - 1u); }
    var of_second = 0u;
    if parts.b > 0u { of_second = b_at(parts.b - 1u); }
    load_words(parts, lane);
    first_begin = 0u;
    second_begin = parts.of_a;
    let len = parts.count;
    let d = min(lane * ITEMS, len);
    let skipped = find_part(d, parts.of_a, len - parts.of_a);
    // The element before the thread's first.
    if skipped > 0u { of_first = wg_words[skipped - 1u]; }
    if d > skipped { of_second = wg_words[parts.of_a + d - skipped - 1u]; }
    let has_first = parts.a + skipped > 0u;
    let has_second = parts.b + d - skipped > 0u;
    let after_second = has_second & (!has_first | (order(of_first) <= order(of_second)));
    let before = order(select(of_first, of_second, after_second));

    var i = skipped;
    var x = wg_words[i];
    var y = wg_words[parts.of_a + d - i];
    var walked = Walked();
    var second = 0u;
#for k in ITEMS
    {
        // Without branches: the threads of a subgroup take from either array.
        let j = parts.of_a + d + {k}u - i;
        let takes_second = (i >= parts.of_a) | ((j < len) & comes_before(y, x));
        walked.elements[{k}] = select(x, y, takes_second);
        second |= select(0u, {1 << k}u, takes_second);
        i += select(1u, 0u, takes_second);
        let next = wg_words[select(i, j + 1u, takes_second)];
        x = select(next, x, takes_second);
        y = select(y, next, takes_second);
    }
#end
    // The elements that equal the one before.
    var equal = select(0u, 1u, (has_first | has_second) & (order(walked.elements[0]) == before));
#for k in 1..ITEMS
    equal |= select(0u, {1 << k}u, order(walked.elements[{k}]) == order(walked.elements[{k - 1}]));
#end
    let there = (1u << min(len - d, ITEMS)) - 1u;
    let behind_second = (second << 1u) | select(0u, 1u, after_second);
    var paired = equal & second & ~behind_second;
    if (equal & second & behind_second & there) != 0u {
        // Only here it matters how many equal elements the first array has.
        let open = open_before(parts.a + skipped, parts.b + d - skipped, parts);
        paired = pair_repeats(second, equal, select(0u, open.spare, open.key == before));
    }
    walked.kept = kept_of(second, paired) & there;
#if PLACES || MARKS
    walked.second = second;
    walked.of_first = parts.a + skipped;
    walked.of_second = parts.b + d - skipped;
#endif
    return walked;
}

// Which elements are kept, of those of the second array and those that have a partner.
fn kept_of(second: u32, paired: u32) -> u32 {
#if MARKS
#if ALONE
    return second & ~paired;
#else
    return paired;
#endif
#else
    return ~paired;
#endif
}

// The elements that have a partner: `spare` have none of those before that equal the one before.
fn pair_repeats(second: u32, equal: u32, spare: u32) -> u32 {
    var paired = 0u;
    var open = spare;
    for (var k = 0u; k < ITEMS; k++) {
        let bit = 1u << k;
        if (equal & bit) == 0u { open = 0u; }
        if (second & bit) == 0u {
            open += 1u;
        } else if open > 0u {
            open -= 1u;
            paired |= bit;
        }
    }
    return paired;
}

// What the workgroup keeps before this thread, and in all: `kept` of this thread. Its barriers end the walk.
#if SUBGROUPS
enable subgroups;

var<workgroup> wg_kept: array<u32, WORKGROUP_SIZE>;

fn rank_kept(kept: u32, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> vec2<u32> {
    let before = subgroupExclusiveAdd(kept);
    let own = subgroupAdd(kept);
    if sub_lane == 0u { wg_kept[sub_id] = own; }
    workgroupBarrier();
    var lower = 0u;
    var all = 0u;
    for (var i = sub_lane; i < sub_count; i += sub_size) {
        let count = wg_kept[i];
        all += count;
        lower += select(0u, count, i < sub_id);
    }
    return vec2<u32>(before + subgroupAdd(lower), subgroupAdd(all));
}
#else
fn rank_kept(kept: u32, lane: u32) -> vec2<u32> {
    let prefix = workgroup_scan(kept, lane);
    return vec2<u32>(prefix.before, prefix.total);
}
#endif

#if ONCE
#import primitives/scan_lookback

alias Item = u32;

fn value_of(x: Item) -> Acc { return x; }
fn has_head(x: Item) -> bool { return false; }

// What this thread's share of another tile keeps. It leaves wg_words as they are, and is rarely wanted.
fn count_share(tile: u32, lane: u32) -> u32 {
    let parts = tile_parts(tile);
    let nothing_held = Parts(0xffffffffu, 0xffffffffu, 0u, 0u);
    let d = min(lane * ITEMS, parts.count);
    let of_b = parts.count - parts.of_a;
    var begin = max(d, of_b) - of_b;
    var end = min(d, parts.of_a);
    while begin < end {
        let middle = begin + (end - begin) / 2u;
        if comes_before(b_at(parts.b + d - 1u - middle), a_at(parts.a + middle)) {
            end = middle;
        } else {
            begin = middle + 1u;
        }
    }
    var i = parts.a + begin;
    var j = parts.b + d - begin;
    let i_end = parts.a + parts.of_a;
    let j_end = parts.b + of_b;
    var open = open_before(i, j, nothing_held);
    var kept = 0u;
    for (var k = d; k < min(d + ITEMS, parts.count); k++) {
        var of_second = i >= i_end;
        if !of_second && j < j_end { of_second = comes_before(b_at(j), a_at(i)); }
        var key = 0u;
        if of_second {
            key = order(b_at(j));
            j += 1u;
        } else {
            key = order(a_at(i));
            i += 1u;
        }
        let equal = key == open.key;
        let paired = of_second && equal && open.spare > 0u;
        kept += select(1u, 0u, paired);
        if of_second {
            open.spare -= select(0u, 1u, paired);
        } else {
            open = Open(key, select(1u, open.spare + 1u, equal));
        }
    }
    return kept;
}

#if SUBGROUPS
var<private> own_lane: u32;

fn total_of_tile(tile: u32, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> Item {
    // All have read what an earlier call left.
    workgroupBarrier();
    return rank_kept(count_share(tile, own_lane), sub_lane, sub_size, sub_id, sub_count).y;
}
#else
fn total_of_tile(tile: u32, lane: u32) -> Item { return rank_kept(count_share(tile, lane), lane).y; }
#endif
#endif

#if MARKS
const MARKED: u32 = TILE / 32u + 2u;
var<workgroup> wg_marks: array<atomic<u32>, MARKED>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn set_union_marks(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
#if LIMITED
    if is_beyond_end(tile) { return; }
#endif
    for (var i = lane; i < MARKED; i += WORKGROUP_SIZE) { atomicStore(&wg_marks[i], 0u); }
    let parts = tile_parts(tile);
    let walked = walk_tile(parts, lane);
    var bits = 0u;
    var seconds = 0u;
#for k in ITEMS
    bits |= ((walked.kept >> {k}u) & 1u) << seconds;
    seconds += (walked.second >> {k}u) & 1u;
#end
    let base = parts.b / 32u;
    let at = walked.of_second - 32u * base;
    if bits != 0u {
        atomicOr(&wg_marks[at / 32u], bits << (at % 32u));
        let rest = (bits >> 1u) >> (31u - at % 32u);
        if rest != 0u { atomicOr(&wg_marks[at / 32u + 1u], rest); }
    }
    workgroupBarrier();
    for (var i = lane; i < MARKED; i += WORKGROUP_SIZE) {
        let word = atomicLoad(&wg_marks[i]);
        if word != 0u { atomicOr(&marks[base + i], word); }
    }
}
#else
#if COUNT
@compute @workgroup_size(WORKGROUP_SIZE)
fn set_union_count(
#put thread_builtins(lane, SUBGROUPS)
) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
#if LIMITED
    if is_beyond_end(tile) {
        if lane == 0u { counts[tile] = 0u; }
        return;
    }
#endif
    let kept = countOneBits(walk_tile(tile_parts(tile), lane).kept);
#if SUBGROUPS
    let rank = rank_kept(kept, sub_lane, sub_size, sub_id, sub_count);
#else
    let rank = rank_kept(kept, lane);
#endif
    if lane == 0u { counts[tile] = rank.y; }
}
#else
#if HALVES
// Stores one of the two halves: another workgroup may store the other at the same time.
fn store_half(place: u32, bits: u32) {
    let shift = 16u * (place % 2u);
    atomicAnd(&output[place / 2u], ~(0xffffu << shift));
    atomicOr(&output[place / 2u], bits << shift);
}

// Stores the first `count` of wg_words from element `begin` on.
fn store_kept(begin: u32, count: u32, lane: u32) {
    let odd = begin % 2u;
    for (var q = lane; 2u * q < count + odd; q += WORKGROUP_SIZE) {
        let high = 2u * q + 1u - odd; // the place of the upper half of the word
        let has_low = high > 0u;
        let has_high = high < count;
        if has_low && has_high {
            atomicStore(&output[begin / 2u + q], wg_words[high - 1u] | (wg_words[high] << 16u));
        } else if has_high {
            store_half(begin + high, wg_words[high]);
        } else if has_low {
            store_half(begin + high - 1u, wg_words[high - 1u]);
        }
    }
}
#else
fn store_kept(begin: u32, count: u32, lane: u32) {
#for k in ITEMS
    if lane + {k}u * WORKGROUP_SIZE < count {
        output[begin + lane + {k}u * WORKGROUP_SIZE] = wg_words[lane + {k}u * WORKGROUP_SIZE];
    }
#end
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn set_union_tiles(
#put thread_builtins(lane, SUBGROUPS)
) {
    var tile = workgroup_index(group);
    if tile >= params.tiles { return; }
#if TICKET
    tile = next_tile(lane);
#endif
#if LIMITED
    if is_beyond_end(tile) { return; }
    let is_last = tile + 1u == params.tiles || is_beyond_end(tile + 1u);
#else
    let is_last = tile + 1u == params.tiles;
#endif
    let walked = walk_tile(tile_parts(tile), lane);
#if SUBGROUPS
    let rank = rank_kept(countOneBits(walked.kept), sub_lane, sub_size, sub_id, sub_count);
#else
    let rank = rank_kept(countOneBits(walked.kept), lane);
#endif
#if ONCE
    // Others can go on while this workgroup moves its elements.
    if lane == 0u { post_total(tile, rank.y); }
#endif
    var to = rank.x;
#for k in ITEMS
    if (walked.kept & {1 << k}u) != 0u {
        wg_words[to] = walked.elements[{k}];
        to += 1u;
    }
#end
#if ONCE
#if SUBGROUPS
    own_lane = lane;
    let before = look_back(tile, rank.y, sub_lane, sub_size, sub_id, sub_count);
#else
    let before = look_back(tile, rank.y, lane);
#endif
#else
    let before = counts[tile] + sums[tile / BLOCK];
#endif
    workgroupBarrier();
    if lane == 0u && is_last { count_out[0] = before + rank.y; }
    store_kept(before, rank.y, lane);
#if PLACES
    workgroupBarrier();
    to = rank.x;
    var of_first = walked.of_first;
    // Those of the second array follow all that the first may have.
    var of_second = params.firsts + walked.of_second;
#for k in ITEMS
    {
        let from_second = (walked.second & {1 << k}u) != 0u;
        if (walked.kept & {1 << k}u) != 0u {
            wg_words[to] = select(of_first, of_second, from_second);
            to += 1u;
        }
        of_first += select(1u, 0u, from_second);
        of_second += select(0u, 1u, from_second);
    }
#end
    workgroupBarrier();
    for (var p = lane; p < rank.y; p += WORKGROUP_SIZE) { places[before + p] = wg_words[p]; }
#endif
}
#endif
#endif
