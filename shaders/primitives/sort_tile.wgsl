// Sorts a tile of keys in a workgroup: ranks them by digit, orders them in workgroup memory and writes them from there,
// so that neighbours are written together. This file handles one key; the slot `steps` has the steps over
// ITEMS_PER_THREAD of them, unrolled or in loops.
// Requires claim_digit and store_key of its importer: the destination of digits. With POSITIONS, which needs
// position_of, the values are the positions of the keys.
#import primitives/sort_key
#import primitives/sort_masks as ranks

const WORKGROUP_SIZE: u32 = 128u;
const ITEMS_PER_THREAD: u32 = 8u;
const TILE: u32 = WORKGROUP_SIZE * ITEMS_PER_THREAD;
const DIGITS_PER_THREAD: u32 = (RADIX + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
#import primitives/sort_steps as steps

#if WIDE
const KEY_WORDS: u32 = 2u;
#else
const KEY_WORDS: u32 = 1u;
#endif

// Keys of each digit in each row; then where the first of them goes in the tile. When all keys know that,
// the same words hold the tile itself.
var<workgroup> wg_words: array<atomic<u32>, max(ROWS * RADIX, KEY_WORDS * TILE)>;
// What to add to a place in the tile for the place in the output.
var<workgroup> wg_bases: array<u32, RADIX>;

fn digit_of(key: Key) -> u32 { return digit_at(key, params.shift, params.mask); }

fn clear_counts() {
    for (var i = invocation; i < rows * RADIX; i += WORKGROUP_SIZE) { atomicStore(&wg_words[i], 0u); }
}

// Where in the tile the keys of this thread begin: each row has consecutive keys, lane by lane.
fn first_key() -> u32 { return row * row_size * ITEMS_PER_THREAD + lane; }

fn load_key(at: u32, end: u32) -> Key { return given_key(keys_in[min(at, end - 1u)]); }

// Past the end come keys that are sorted behind all others; nothing is written of them.
fn pad_key(key: Key, at: u32, end: u32) -> Key { return select(padding(), key, at < end); }

// Turns the counts of digits into places in the tile, and claims room in the output for each digit.
fn split_digits() {
    let first = invocation * DIGITS_PER_THREAD;
    let end = min(first + DIGITS_PER_THREAD, RADIX);
    var sum = 0u;
    for (var digit = first; digit < end; digit++) {
        for (var i = digit; i < rows * RADIX; i += RADIX) { sum += atomicLoad(&wg_words[i]); }
    }
    var at = sum_before(sum);
    for (var digit = first; digit < end; digit++) {
        let start = at;
        for (var i = digit; i < rows * RADIX; i += RADIX) {
            let keys = atomicLoad(&wg_words[i]);
            atomicStore(&wg_words[i], at);
            at += keys;
        }
        claim_digit(digit, start, at - start);
    }
}

// Where in the tile a key goes.
fn place_of(key: Key, rank: u32) -> u32 { return atomicLoad(&wg_words[row * RADIX + digit_of(key)]) + rank; }

fn place_key(key: Key, at: u32) {
#if WIDE
    atomicStore(&wg_words[at], key.x);
    atomicStore(&wg_words[TILE + at], key.y);
#else
    atomicStore(&wg_words[at], key);
#endif
}

fn key_at(at: u32) -> Key {
#if WIDE
    return Key(atomicLoad(&wg_words[at]), atomicLoad(&wg_words[TILE + at]));
#else
    return atomicLoad(&wg_words[at]);
#endif
}

// Writes the key at `at` of the tile, if it is one of `keys`; returns where.
fn emit_key(at: u32, keys: u32) -> u32 {
    let key = key_at(at);
    let place = wg_bases[digit_of(key)] + at;
    if at < keys { store_key(place, key); }
    return place;
}

#if VALUES
#if POSITIONS
#import primitives/argsort_positions
#else
fn load_value(at: u32, end: u32) -> u32 { return values_in[min(at, end - 1u)]; }
#endif

fn place_value(value: u32, at: u32) { atomicStore(&wg_words[at], value); }

fn emit_value(at: u32, keys: u32, place: u32) {
    let value = atomicLoad(&wg_words[at]);
    if at < keys { store_value(place, value); }
}
#endif
