// Sorts each segment within a tile, stably; a tile in which no segment begins is left out. One workgroup sorts one tile:
// a thread sorts ITEMS neighbours, then runs of threads are merged by twos. A merge moves only the segment that
// straddles the middle. Algorithm: S. Baxter, Modern GPU (2013): segmented sort; O. Green, R. McColl, D. Bader, GPU
// merge path (2012).
#import primitives/segmented_sort_ends
#import primitives/sort_key
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS: u32 = 7u;
const WORDS: u32 = TILE / 32u;

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

var<workgroup> wg_keys: array<Key, TILE>;
#if VALUES
var<workgroup> wg_values: array<u32, TILE>;
#endif
var<workgroup> wg_heads: array<u32, WORDS>;
// Bit i: word i of the heads is not 0.
var<workgroup> wg_filled: array<atomic<u32>, 2>;
var<workgroup> wg_map: vec2<u32>;

// The lowest `count` bits of a word, 0 to 32.
fn lowest(word: u32, count: u32) -> u32 {
    return select(word & ((1u << (count & 31u)) - 1u), word, count >= 32u);
}

// The last head below place `at`, or 0. `at` is not 0.
fn head_below(map: vec2<u32>, at: u32) -> u32 {
    var word = (at - 1u) / 32u;
    var bits = lowest(wg_heads[word], at - 32u * word);
    if bits == 0u {
        let high = lowest(map.y, max(word, 32u) - 32u);
        let low = lowest(map.x, min(word, 32u));
        if (high | low) == 0u { return 0u; }
        word = select(firstLeadingBit(low), 32u + firstLeadingBit(high), high != 0u);
        bits = wg_heads[word];
    }
    return 32u * word + firstLeadingBit(bits);
}

// The first head from place `at` on, or TILE. `at` is below TILE.
fn head_from(map: vec2<u32>, at: u32) -> u32 {
    var word = at / 32u;
    var bits = wg_heads[word] & (4294967295u << (at % 32u));
    if bits == 0u {
        let low = map.x & ~lowest(4294967295u, min(word + 1u, 32u));
        let high = map.y & ~lowest(4294967295u, max(word + 1u, 32u) - 32u);
        if (high | low) == 0u { return TILE; }
        word = select(32u + firstTrailingBit(high), firstTrailingBit(low), low != 0u);
        bits = wg_heads[word];
    }
    return 32u * word + firstTrailingBit(bits);
}

fn is_head(at: u32) -> bool { return ((wg_heads[at / 32u] >> (at % 32u)) & 1u) != 0u; }

// Whether the key at the later place goes before the other.
fn goes_first(later: Key, earlier: Key) -> bool { return order(later) < order(earlier); }

// Writes the thread's items to the tile.
#block keep(base)
#for i in ITEMS
    wg_keys[{base} + {i}u] = key_{i};
#if VALUES
    wg_values[{base} + {i}u] = value_{i};
#endif
#end
#end

@compute @workgroup_size(WORKGROUP_SIZE)
fn segmented_sort_tiles(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    let first = tile * TILE;
    if first >= params.n { return; }
    let count = min(TILE, params.n - first);
    if lane < 2u { atomicStore(&wg_filled[lane], 0u); }
    workgroupBarrier();
    if lane < WORDS {
        var bits = 0u;
        if 32u * lane < count { bits = heads[first / 32u + lane]; }
        // The first of all keys begins a segment, whatever the offsets are.
        bits |= u32(tile + lane == 0u);
        wg_heads[lane] = bits;
        if bits != 0u { atomicOr(&wg_filled[lane / 32u], 1u << (lane % 32u)); }
    }
    workgroupBarrier();
    if lane == 0u { wg_map = vec2<u32>(atomicLoad(&wg_filled[0]), atomicLoad(&wg_filled[1])); }
    let map = workgroupUniformLoad(&wg_map);
    if (map.x | map.y) == 0u {
        if lane == 0u { ends[tile] = HEADLESS; }
        return;
    }
    if lane == 0u { ends[tile] = head_from(map, 0u) | (head_below(map, TILE) << 16u); }
    for (var i = 0u; i < ITEMS; i++) {
        let at = i * WORKGROUP_SIZE + lane;
        var key: Key;
        if at < count { key = keys[first + at]; }
        wg_keys[at] = key;
#if VALUES
        var value = 0u;
        if at < count { value = values[first + at]; }
        wg_values[at] = value;
#endif
    }
    workgroupBarrier();

    // A thread's own items, by odd-even transposition: neighbours of one segment change places.
    let base = ITEMS * lane;
#for i in ITEMS
    var key_{i} = wg_keys[base + {i}u];
#if VALUES
    var value_{i} = wg_values[base + {i}u];
#endif
    let joined_{i} = base + {i}u < count && !is_head(base + {i}u);
#end
#for round in ITEMS
#for i in ITEMS
#if i > 0 && i % 2 != round % 2
    if joined_{i} && goes_first(key_{i}, key_{i - 1}) {
        let key = key_{i};
        key_{i} = key_{i - 1};
        key_{i - 1} = key;
#if VALUES
        let value = value_{i};
        value_{i} = value_{i - 1};
        value_{i - 1} = value;
#endif
    }
#endif
#end
#end
#put keep(base)
    workgroupBarrier();

    for (var run = 1u; run * ITEMS < count; run *= 2u) {
        let start = ITEMS * (lane & ~(2u * run - 1u));
        let middle = start + ITEMS * run;
        var begin = 0u;
        var end = 0u;
        if middle < count && !is_head(middle) {
            begin = max(start, head_below(map, middle));
            end = min(min(middle + ITEMS * run, count), head_from(map, middle));
        }
        let moves = base < end && base + ITEMS > begin;
        if moves {
            // Of the first `skipped` results, `low` come from the left.
            let skipped = max(base, begin) - begin;
            var low = max(skipped + middle, end) - end;
            var high = min(skipped, middle - begin);
            while low < high {
                let half = (low + high) / 2u;
                if goes_first(wg_keys[middle + skipped - 1u - half], wg_keys[begin + half]) {
                    high = half;
                } else {
                    low = half + 1u;
                }
            }
            var left = begin + low;
            var right = middle + skipped - low;
#for i in ITEMS
            if base + {i}u >= begin && base + {i}u < end {
                let left_key = wg_keys[left];
                let right_key = wg_keys[min(right, TILE - 1u)];
                let takes_right = left >= middle || (right < end && goes_first(right_key, left_key));
                key_{i} = select(left_key, right_key, takes_right);
#if VALUES
                value_{i} = wg_values[select(left, right, takes_right)];
#endif
                left += u32(!takes_right);
                right += u32(takes_right);
            }
#end
        }
        workgroupBarrier();
        if moves {
#put keep(base)
        }
        workgroupBarrier();
    }

    for (var i = 0u; i < ITEMS; i++) {
        let at = i * WORKGROUP_SIZE + lane;
        if at < count {
            keys_out[first + at] = wg_keys[at];
#if VALUES
            values_out[first + at] = wg_values[at];
#endif
        }
    }
}
