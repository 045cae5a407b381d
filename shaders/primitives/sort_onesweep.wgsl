// A pass of the variant `onesweep` (Adinets and Merrill 2022): reads and writes the keys once. One workgroup takes the
// next tile, posts its count of each digit, and adds up the counts of earlier tiles by decoupled look-back, one thread
// for each digit. Counts and flags share a word, so relaxed atomics suffice. If a post does not come, the workgroup
// counts that tile itself: no tile waits for another to run. Requires subgroup operations.
#import primitives/sort_tile
#import primitives/sort_globals

struct Params {
    pass_index: u32,
    shift: u32, // lowest bit of the digit
    mask: u32,  // its bits
    items: u32, // ITEMS_PER_THREAD again, for loops that are not to be unrolled
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> keys_in: array<Key>;
@group(0) @binding(2) var<storage, read_write> keys_out: array<Key>;
@group(0) @binding(3) var<storage, read_write> globals: array<atomic<u32>>;
// For each tile and digit: nothing yet, the tile's count, or the count up to and with the tile.
@group(0) @binding(4) var<storage, read_write> posts: array<atomic<u32>>;
@group(0) @binding(5) var<storage, read_write> next_posts: array<u32>;
#if VALUES
#if POSITIONS
@group(0) @binding(6) var<storage, read_write> values_out: array<u32>;

fn position_of(at: u32) -> u32 { return at; }
#else
@group(0) @binding(6) var<storage, read> values_in: array<u32>;
@group(0) @binding(7) var<storage, read_write> values_out: array<u32>;
#endif
#endif

const OWN: u32 = 0x40000000u;
const UP_TO: u32 = 0x80000000u;
const COUNT: u32 = 0x3fffffffu;
// Readings of a post that is not there before the workgroup counts the tile itself.
const PATIENCE: u32 = 64u;
#if LEAVE_OUT
// For tests: one tile in ONE_IN posts nothing.
const ONE_IN: u32 = 2u;
#endif

var<workgroup> wg_begin: vec2<u32>;
var<workgroup> wg_totals: array<u32, RADIX>;
// Counts of another tile.
var<workgroup> wg_other: array<atomic<u32>, RADIX>;
var<workgroup> wg_missing: atomic<u32>;
var<workgroup> wg_missed: u32;

var<private> tile: u32;

fn post(digit: u32, word: u32) {
#if LEAVE_OUT
    if ((tile * 2654435761u) >> 16u) % ONE_IN == 0u { return; }
#endif
    atomicStore(&posts[tile * RADIX + digit], word);
}

fn claim_digit(digit: u32, start: u32, keys: u32) {
    post(digit, select(OWN, UP_TO, tile == 0u) | keys);
    wg_bases[digit] = start;
    wg_totals[digit] = keys;
    next_posts[tile * RADIX + digit] = 0u;
}

// Counts tile `other` and posts that in its stead. Whichever comes first, the counts are the same, and
// a count up to the tile is the larger word.
fn stand_in(other: u32) {
    for (var digit = invocation; digit < RADIX; digit += WORKGROUP_SIZE) { atomicStore(&wg_other[digit], 0u); }
    if invocation == 0u { atomicStore(&wg_missing, 0u); }
    workgroupBarrier();
    for (var i = invocation; i < TILE; i += WORKGROUP_SIZE) {
        atomicAdd(&wg_other[digit_of(given_key(keys_in[other * TILE + i]))], 1u);
    }
    workgroupBarrier();
    for (var digit = invocation; digit < RADIX; digit += WORKGROUP_SIZE) {
        atomicMax(&posts[other * RADIX + digit], OWN | atomicLoad(&wg_other[digit]));
    }
}

// The posts of the four tiles before tile `left`, so that their latencies overlap.
fn read_posts(left: u32, digit: u32) -> vec4<u32> {
    let tiles = vec4<u32>(left) - min(vec4<u32>(1u, 2u, 3u, 4u), vec4<u32>(left));
    let at = tiles * RADIX + digit;
    return vec4<u32>(
        atomicLoad(&posts[at.x]), atomicLoad(&posts[at.y]), atomicLoad(&posts[at.z]), atomicLoad(&posts[at.w]),
    );
}

// Adds the count of the tile before `left`, if there is one and it has posted; says whether.
fn add_post(word: u32, left: ptr<function, u32>, before: ptr<function, u32>) -> bool {
    if *left == 0u || word == 0u { return false; }
    *before += word & COUNT;
    *left = select(*left - 1u, 0u, word >= UP_TO);
    return true;
}

// Finds where the keys of each digit of this tile go.
fn look_back() {
    for (var first = 0u; first < RADIX; first += WORKGROUP_SIZE) {
        let digit = first + invocation;
        var left = select(0u, tile, digit < RADIX); // tiles whose counts are still to be added
        var before = 0u;
        loop {
            var patience = PATIENCE;
            while left > 0u && patience > 0u {
                let was = left;
                let words = read_posts(left, digit);
                _ = add_post(words.x, &left, &before) && add_post(words.y, &left, &before)
                    && add_post(words.z, &left, &before) && add_post(words.w, &left, &before);
                patience = select(PATIENCE, patience - 1u, left == was);
            }
            if left > 0u { atomicMax(&wg_missing, left); }
            workgroupBarrier();
            if invocation == 0u { wg_missed = atomicLoad(&wg_missing); }
            let missed = workgroupUniformLoad(&wg_missed);
            if missed == 0u { break; }
            stand_in(missed - 1u);
        }
        if digit < RADIX {
            if tile > 0u { post(digit, UP_TO | (before + wg_totals[digit])); }
            let start = atomicLoad(&globals[HEAD + params.pass_index * RADIX + digit]);
            wg_bases[digit] = start + before - wg_bases[digit];
        }
    }
}

fn store_key(place: u32, key: Key) { keys_out[place] = key; }

#if VALUES
fn store_value(place: u32, value: u32) { values_out[place] = value; }
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn sort_onesweep(
    @builtin(subgroup_invocation_id) sub_lane: u32, @builtin(subgroup_size) sub_size: u32,
    @builtin(subgroup_id) sub_id: u32, @builtin(num_subgroups) sub_count: u32,
) {
    take_place(sub_id, sub_lane, sub_count, sub_size);
    if invocation == 0u {
        wg_begin = vec2<u32>(atomicAdd(&globals[params.pass_index], 1u), atomicLoad(&globals[KEYS]));
        atomicStore(&wg_missing, 0u);
    }
    clear_counts();
    let begin = workgroupUniformLoad(&wg_begin);
    tile = begin.x;
    let first = begin.x * TILE;
    if first >= begin.y { return; }
    let keys = min(TILE, begin.y - first);
    load_keys(first + first_key(), begin.y, keys == TILE);
    rank_keys();
    workgroupBarrier();
    split_digits();
    workgroupBarrier();
    find_places();
    workgroupBarrier();
    place_keys();
#if VALUES
    load_values(first + first_key(), begin.y);
#endif
    look_back();
    workgroupBarrier();
    emit_keys(keys);
#if VALUES
    workgroupBarrier();
    place_values();
    workgroupBarrier();
    emit_values(keys);
#endif
}
