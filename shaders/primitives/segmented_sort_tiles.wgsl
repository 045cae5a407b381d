// Sorts each segment within a tile, stably; a tile in which no segment begins is left out. One workgroup sorts one
// tile. A segment of up to CHUNK keys is sorted in registers by the thread in whose places it begins. A longer one is
// cut at multiples of CHUNK: a thread sorts a chunk, then runs of chunks are merged by twos. With LISTED, threads with
// a chunk are neighbours, so that no subgroup is half idle. With NETWORK, LANES of a subgroup sort a segment of up to
// REACH keys in registers. SHORT: most segments have no more than 112 keys. Algorithm: S. Baxter, Modern GPU (2013):
// segmented sort; O. Green, R. McColl, D. Bader, GPU merge path (2012); K. Batcher, Sorting Networks and Their
// Applications (1968).
#import primitives/segmented_sort_ends
#import primitives/sort_key
#import workgroup/index

// Two threads own CHUNK places: in these at most one longer segment ends and one begins.
const CHUNK: u32 = 15u; // odd, so that neighbouring threads begin in different banks
const WORKGROUP_SIZE: u32 = TILE / CHUNK * 2u;
const OWNED: u32 = 8u; // places of the first of the two
const ITEMS: u32 = (TILE + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
const WORDS: u32 = TILE / 32u;

#if NETWORK
enable subgroups;
// The list of segments is the same for all lanes.
diagnostic(off, subgroup_uniformity);

const LOG_LANES: u32 = 5u;
const LANES: u32 = 1u << LOG_LANES; // that sort a segment: all of a subgroup or, SHORT, some
// A lane holds 1 << FEWEST, twice as many, ... keys, and less than 1 << WIDTHS.
const FEWEST: u32 = 0u;
const WIDTHS: u32 = 4u;
const REACH: u32 = LANES << (WIDTHS - 1u);
#endif

struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> heads: array<u32>;
@group(0) @binding(2) var<storage, read_write> ends: array<u32>;
@group(0) @binding(3) var<storage, read> keys: array<Key>;
@group(0) @binding(4) var<storage, read_write> keys_out: array<Key>;
#if VALUES
@group(0) @binding(5) var<storage, read> values: array<u32>;
@group(0) @binding(6) var<storage, read_write> values_out: array<u32>;
#endif

// The numbers of the tile's keys. A merge looks up to CHUNK places beyond its end.
var<workgroup> wg_numbers: array<u32, TILE + CHUNK>;
#if VALUES
var<workgroup> wg_values: array<u32, TILE + CHUNK>;
#endif
var<workgroup> wg_heads: array<u32, WORDS + 1u>;
#if LISTED
// Where the chunks of longer segments begin, two in a word.
const STARTS: u32 = WORKGROUP_SIZE / 2u;
var<workgroup> wg_starts: array<atomic<u32>, STARTS>;
var<workgroup> wg_listed: atomic<u32>;
#endif
#if NETWORK
// Where segments that a subgroup sorts begin and end, 16 bits each.
const LISTS: u32 = TILE / (CHUNK + 1u);
var<workgroup> wg_short: array<u32, LISTS>;
var<workgroup> wg_shorts: atomic<u32>;
#endif
// Chunks of the longest segment that has several.
var<workgroup> wg_most: atomic<u32>;
var<workgroup> wg_runs: u32;

// A key and its number determine each other. Numbers above NANS are those of NaNs, which are equal.
#if FLOAT
const NANS: u32 = 0xff000002u;
const FIRST: u32 = 0x007fffffu; // the least number of a float that is no NaN, once its sign is dealt with

fn number_of(key: Key) -> u32 {
    let sign = bitcast<u32>(bitcast<i32>(key) >> 31u);
    return (key ^ (sign | 0x80000000u) ^ FLIP) - FIRST;
}

fn key_of(number: u32) -> Key {
    let ordered = (number + FIRST) ^ FLIP;
    let sign = bitcast<u32>(bitcast<i32>(ordered) >> 31u);
    return ordered ^ (~sign | 0x80000000u);
}

fn is_less(a: u32, b: u32) -> bool { return a < min(b, NANS); }
#else
fn number_of(key: Key) -> u32 { return key ^ FLIP; }
fn key_of(number: u32) -> Key { return number ^ FLIP; }
fn is_less(a: u32, b: u32) -> bool { return a < b; }
#endif

// The last head below place `at`, or TILE if there is none.
fn head_below(at: u32) -> u32 {
    var word = at / 32u;
    var bits = wg_heads[word] & ((1u << (at % 32u)) - 1u);
    while bits == 0u && word > 0u {
        word -= 1u;
        bits = wg_heads[word];
    }
    return select(32u * word + firstLeadingBit(bits), TILE, bits == 0u);
}

// The first head from place `at` on, or TILE.
fn head_from(at: u32) -> u32 {
    var word = at / 32u;
    var bits = wg_heads[word] & (4294967295u << (at % 32u));
    while bits == 0u && word < WORDS {
        word += 1u;
        bits = wg_heads[word];
    }
    return select(32u * word + firstTrailingBit(bits), TILE, bits == 0u);
}

#if SHORT && NETWORK
// Lists the segments that begin in word `w` of the heads; marks the tile in wg_most if one is too long for LANES, or if
// there are too many. The part of a segment that began in an earlier tile is sorted by itself.
fn list_segments(w: u32, count: u32) {
    var bits = wg_heads[w] | u32(w == 0u);
    while bits != 0u {
        let begin = 32u * w + firstTrailingBit(bits);
        bits &= bits - 1u;
        var end = 32u * w + firstTrailingBit(bits);
        if bits == 0u { end = head_from(32u * w + 32u); }
        end = min(end, count);
        if end > begin + 1u {
            let slot = atomicAdd(&wg_shorts, 1u);
            if slot >= LISTS || end - begin > REACH {
                atomicMax(&wg_most, 1u);
            } else {
                wg_short[slot] = begin | (end << 16u);
            }
        }
    }
}
#endif

// Writes the thread's items to the tile.
#block keep(base, count)
#for i in CHUNK
    if {i}u < {count} {
        wg_numbers[{base} + {i}u] = number_{i};
#if VALUES
        wg_values[{base} + {i}u] = value_{i};
#endif
    }
#end
#end

// The lesser of two numbers first.
#block exchange(i, j)
    least = min(number_{i}, number_{j});
    number_{j} = max(number_{i}, number_{j});
    number_{i} = least;
#end

// M. W. Green's network for 16 numbers (1969); it sorts 15 without the last.
#block green(count)
#for e in 4
#for i in {count} / 2
#put exchange({((i >> e) << (e + 1)) + i % (1 << e)}, {((i >> e) << (e + 1)) + i % (1 << e) + (1 << e)})
#end
#end
#put exchange(5, 10)
#put exchange(6, 9)
#put exchange(3, 12)
#put exchange(13, 14)
#put exchange(4, 8)
#put exchange(7, 11)
#put exchange(1, 2)
#put exchange(1, 4)
#put exchange(7, 13)
#put exchange(2, 8)
#put exchange(11, 14)
#put exchange(2, 4)
#put exchange(5, 6)
#put exchange(9, 10)
#put exchange(11, 13)
#put exchange(3, 8)
#put exchange(7, 12)
#put exchange(6, 8)
#put exchange(10, 12)
#put exchange(3, 5)
#put exchange(7, 9)
#put exchange(3, 4)
#put exchange(5, 6)
#put exchange(7, 8)
#put exchange(9, 10)
#put exchange(11, 12)
#put exchange(6, 7)
#put exchange(8, 9)
#end

#if NETWORK
// Compares with the numbers that other lanes hold: the lower lane keeps the lesser ones.
#block exchange_lanes(mask, bit, each, mirrored)
#for e in each
#if {mirrored}
    let other_{e} = subgroupShuffleXor(number_{each - 1 - e}, {mask}u);
#else
    let other_{e} = subgroupShuffleXor(number_{e}, {mask}u);
#endif
#end
    let keeps_least = (lane & {bit}u) == 0u;
#for e in each
#if SHORT
    number_{e} = select(other_{e}, number_{e}, (number_{e} < other_{e}) == keeps_least);
#else
    number_{e} = select(max(number_{e}, other_{e}), min(number_{e}, other_{e}), keeps_least);
#endif
#end
#end

#for log in FEWEST..WIDTHS
// Sorts `size` numbers from place `begin` on by a bitonic network. Lane i holds {1 << log}, from number {1 << log} i
// on.
fn sort_by_{1 << log}(begin: u32, size: u32, lane: u32) {
    // They may begin in any order.
#for e in 1 << log
    var number_{e} = 4294967295u; // stays behind the others
    if lane + {e}u * LANES < size { number_{e} = wg_numbers[begin + lane + {e}u * LANES]; }
#end
    var least: u32;
#if log == 4
#put green(16)
#endif
#for stage in LOG_LANES + log
#if log < 4 || stage >= 4
#if {2 << stage} > {1 << log}
    {
#put exchange_lanes({(2 << stage >> log) - 1}, {1 << stage >> log}, {1 << log}, true)
    }
#else
#for i in 1 << stage
#for run in 1 << log >> (stage + 1)
#put exchange({(run << (stage + 1)) + i}, {(run << (stage + 1)) + (2 << stage) - 1 - i})
#end
#end
#endif
#for step in stage
#if {1 << stage >> (step + 1)} >= {1 << log}
    {
#put exchange_lanes({1 << stage >> (step + 1 + log)}, {1 << stage >> (step + 1 + log)}, {1 << log}, false)
    }
#else
#for i in 1 << stage >> (step + 1)
#for run in 1 << log >> (stage - step)
#put exchange({(run << (stage - step)) + i}, {(run << (stage - step)) + i + (1 << stage >> (step + 1))})
#end
#end
#endif
#end
#endif
#end
#for e in 1 << log
    if lane * {1 << log}u + {e}u < size { wg_numbers[begin + lane * {1 << log}u + {e}u] = number_{e}; }
#end
}

#end
#endif
// Writes the keys that a thread loaded to the tile.
#block hold()
#for i in ITEMS
        if at_{i} < TILE + CHUNK {
            wg_numbers[at_{i}] = number_of(key_{i});
#if VALUES
            wg_values[at_{i}] = loaded_{i};
#endif
        }
#end
#end

#block note_ends()
        let front = head_from(0u);
        ends[tile] = select(front | (head_below(TILE) << 16u), HEADLESS, front == TILE);
#end

// Loads the keys of a thread, and their values, all in flight together.
#block load(first, count, lane)
#for i in ITEMS
    let at_{i} = lane + {i}u * WORKGROUP_SIZE;
    var key_{i}: Key;
    if at_{i} < count { key_{i} = keys[first + at_{i}]; }
#if VALUES
    var loaded_{i} = 0u;
    if at_{i} < count { loaded_{i} = values[first + at_{i}]; }
#endif
#end
#end

@compute @workgroup_size(WORKGROUP_SIZE)
fn segmented_sort_tiles(
#put thread_builtins(lane, NETWORK)
) {
    let tile = workgroup_index(group);
    let first = tile * TILE;
    if first >= extent() { return; }
    let count = min(TILE, extent() - first);
#if SHORT
    // Nearly every tile has heads: its keys come while they are read.
#put load(first, count, lane)
#endif
    if lane == 0u { atomicStore(&wg_most, 0u); }
#if LISTED
    if lane == 0u { atomicStore(&wg_listed, 0u); }
    if lane < STARTS { atomicStore(&wg_starts[lane], 0u); }
#endif
#if NETWORK
    if lane == 0u { atomicStore(&wg_shorts, 0u); }
#endif
    if lane <= WORDS {
        var bits = 0u;
        if 32u * lane < count { bits = extractBits(heads[first / 32u + lane], 0u, min(count - 32u * lane, 32u)); }
        // The first of all keys begins a segment, whatever the offsets are.
        wg_heads[lane] = bits | u32(tile + lane == 0u);
    }
    workgroupBarrier();

    var is_headed = true;
    var begin = 0u;
    var start = 0u;
    var end = 0u;
    var is_long = false;
    var len = 0u;
    var first_block = 0u;
    var place = 0u;
#if SHORT && NETWORK
#put hold()
    if lane < WORDS { list_segments(lane, count); }
    workgroupBarrier();
    if lane == 0u { wg_runs = atomicLoad(&wg_most); }
    if workgroupUniformLoad(&wg_runs) != 0u {
    if lane == 0u { atomicStore(&wg_shorts, 0u); }
    workgroupBarrier();
#endif
    // The heads in the places that this thread owns, and around them.
    let block = CHUNK * (lane / 2u);
    let is_second = lane % 2u != 0u;
    let own = block + select(0u, OWNED, is_second);
    let owned = select(OWNED, CHUNK - OWNED, is_second);
    let word = own / 32u;
    let shift = own % 32u;
    var bits = (wg_heads[word] >> shift) | ((wg_heads[word + 1u] << 1u) << (31u - shift));
    bits &= (1u << owned) - 1u;
    let before = head_below(own);
    let after = head_from(own + owned);
    is_headed = bits != 0u || before < TILE || after < TILE;
    // The part of a segment that began in an earlier tile is sorted by itself.
    bits |= u32(lane == 0u);
#if !(SHORT && NETWORK)
    if is_headed {
#if !SHORT
#put load(first, count, lane)
#endif
#put hold()
    }
#endif

    // The segment longer than CHUNK of which a chunk begins in the thread's places.
    begin = select(before, 0u, before == TILE);
    start = block;
    var others = bits;
    if is_second {
        if bits != 0u { begin = own + firstLeadingBit(bits); }
        start = begin;
        others = 0u;
    } else {
        if (bits & 1u) != 0u { begin = own; }
        others &= ~1u;
    }
    end = min(select(own + firstTrailingBit(others), after, others == 0u), count);
    is_long = is_headed && end > begin + CHUNK && start < end && (!is_second || begin > block);
#if NETWORK
    if is_long && end - begin <= REACH {
        if start == begin { wg_short[atomicAdd(&wg_shorts, 1u)] = begin | (end << 16u); }
        is_long = false;
    }
#endif
    if is_long && start == begin { atomicMax(&wg_most, (end - 1u - begin / CHUNK * CHUNK) / CHUNK + 1u); }
#if LISTED
    if is_long {
        let slot = atomicAdd(&wg_listed, 1u);
        atomicOr(&wg_starts[slot / 2u], start << (16u * (slot % 2u)));
    }
#endif
    workgroupBarrier();
    if lane == 0u {
#put note_ends()
        wg_runs = atomicLoad(&wg_most);
    }
#if LISTED
    // The chunk that this thread sorts instead.
    is_long = lane < atomicLoad(&wg_listed);
    start = 0u;
    begin = 0u;
    end = 0u;
    if is_long {
        start = (atomicLoad(&wg_starts[lane / 2u]) >> (16u * (lane % 2u))) & 0xffffu;
        let head = head_below(start + 1u);
        begin = select(head, 0u, head == TILE);
        end = min(head_from(start + 1u), count);
    }
    let chunk_block = start / CHUNK * CHUNK;
#else
    let chunk_block = block;
#endif
    len = select(0u, min(chunk_block + CHUNK, end) - start, is_long);
    first_block = begin / CHUNK * CHUNK;
    place = (chunk_block - min(first_block, chunk_block)) / CHUNK;

    // The chunk, then the short segments that begin in the thread's places, sorted in registers.
    var rest = select(0u, bits, is_headed);
    var at = start;
    var size = len;
    loop {
        while size == 0u && rest != 0u {
            at = own + firstTrailingBit(rest);
            rest &= rest - 1u;
            let next = min(select(own + firstTrailingBit(rest), after, rest == 0u), count);
            if next > at + 1u && next <= at + CHUNK { size = next - at; }
        }
        if size == 0u { break; }
#for i in CHUNK
        var number_{i} = 4294967295u; // stays behind the others
#if VALUES
        var value_{i} = 0u;
#endif
        if {i}u < size {
            number_{i} = wg_numbers[at + {i}u];
#if VALUES
            value_{i} = wg_values[at + {i}u];
#endif
        }
#end
#if !LISTED || VALUES || FLOAT
        // Odd-even transposition, which is stable.
        for (var round = 0u; round < size; round += 2u) {
#for odd in 2
#for i in CHUNK / 2
            {
#if VALUES || FLOAT
                let swaps = is_less(number_{2 * i + odd + 1}, number_{2 * i + odd});
                let number = number_{2 * i + odd};
                number_{2 * i + odd} = select(number, number_{2 * i + odd + 1}, swaps);
                number_{2 * i + odd + 1} = select(number_{2 * i + odd + 1}, number, swaps);
#if VALUES
                let value = value_{2 * i + odd};
                value_{2 * i + odd} = select(value, value_{2 * i + odd + 1}, swaps);
                value_{2 * i + odd + 1} = select(value_{2 * i + odd + 1}, value, swaps);
#endif
#else
                let number = number_{2 * i + odd};
                number_{2 * i + odd} = min(number, number_{2 * i + odd + 1});
                number_{2 * i + odd + 1} = max(number, number_{2 * i + odd + 1});
#endif
            }
#end
#end
        }
#else
        // Equal numbers are the same, so any network will do.
        var least: u32;
#put green(CHUNK)
#endif
#put keep(at, size)
        size = 0u;
    }
#if SHORT && NETWORK
    } else if lane == WORKGROUP_SIZE - 1u {
        // Its subgroup is idle in most tiles.
#put note_ends()
    }
#endif

#if NETWORK
    let shorts = atomicLoad(&wg_shorts);
#if SHORT
    // A segment for each LANES lanes; the longest decides.
    let groups = sub_size / LANES;
    for (var i = sub_id * groups; i < shorts; i += sub_count * groups) {
        let mine = i + sub_lane / LANES;
        var start_of = 0u;
        var keys_of = 0u;
        if mine < shorts {
            start_of = wg_short[mine] & 0xffffu;
            keys_of = (wg_short[mine] >> 16u) - start_of;
        }
        let largest = subgroupMax(keys_of);
        let group_lane = sub_lane % LANES;
#else
    for (var i = sub_id; i < shorts; i += sub_count) {
        let start_of = wg_short[i] & 0xffffu;
        let keys_of = (wg_short[i] >> 16u) - start_of;
        let largest = keys_of;
        let group_lane = sub_lane;
#endif
#for log in FEWEST..WIDTHS
#if log + 1 < WIDTHS
        if largest <= LANES << {log}u {
            sort_by_{1 << log}(start_of, keys_of, group_lane);
            continue;
        }
#else
        sort_by_{1 << log}(start_of, keys_of, group_lane);
#endif
#end
    }
#endif
    let most = workgroupUniformLoad(&wg_runs);
    for (var run = 1u; run < most; run *= 2u) {
        // The runs of this merge begin at `left_begin` and `middle`.
        let pair = first_block + CHUNK * (place & ~(2u * run - 1u));
        let left_begin = max(begin, pair);
        let middle = pair + CHUNK * run;
        let moves = is_long && middle < end;
#for i in CHUNK
        var number_{i} = 0u;
#if VALUES
        var value_{i} = 0u;
#endif
#end
        if moves {
            let stop = min(middle + CHUNK * run, end);
            // Of the first `skipped` results, `low` come from the left.
            let skipped = start - left_begin;
            var low = max(skipped + middle, stop) - stop;
            var high = min(skipped, middle - left_begin);
            while low < high {
                let half = (low + high) / 2u;
                if is_less(wg_numbers[middle + skipped - 1u - half], wg_numbers[left_begin + half]) {
                    high = half;
                } else {
                    low = half + 1u;
                }
            }
            var left = left_begin + low;
            // Places taken of both, so that the right place follows from the left one.
            let both = left_begin + middle + skipped;
            var x = wg_numbers[left];
            var y = wg_numbers[both - left];
#for i in CHUNK
            {
                // Without branches: the threads of a subgroup take from either side.
                let right = both + {i}u - left;
                let takes_right = (left >= middle) | ((right < stop) & is_less(y, x));
                number_{i} = select(x, y, takes_right);
#if VALUES
                value_{i} = wg_values[select(left, right, takes_right)];
#endif
                left += select(1u, 0u, takes_right);
                let next = wg_numbers[select(left, right + 1u, takes_right)];
                x = select(next, x, takes_right);
                y = select(y, next, takes_right);
            }
#end
        }
        workgroupBarrier();
        if moves {
#put keep(start, len)
        }
        workgroupBarrier();
    }

    if is_headed {
#for i in ITEMS
        let at_{i} = lane + {i}u * WORKGROUP_SIZE;
        if at_{i} < count {
            keys_out[first + at_{i}] = key_of(wg_numbers[at_{i}]);
#if VALUES
            values_out[first + at_{i}] = wg_values[at_{i}];
#endif
        }
#end
    }
}
