// Merges two sorted sequences by merge path (O. Green, R. McColl and D. Bader, GPU Merge Path, 2012). A workgroup makes
// one tile of the result: it bisects for the parts that the tile takes, loads them into workgroup memory, and each
// thread merges ITEMS elements there. Equal elements of the first sequence come first.
// The importer declares `fn a_at(i: u32) -> u32`, `fn b_at(j: u32) -> u32`, and `fn comes_before(x: u32, y: u32) -> bool`.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS: u32 = 15u; // odd, so that the parts of neighbouring threads begin in different banks
const TILE: u32 = WORKGROUP_SIZE * ITEMS;

// How many of the first `d` elements of the result come from the first sequence. The result is within bounds whatever
// the order of the elements.
#block bisect_diagonal(name, a_at, b_at)
fn {name}(d: u32, a_len: u32, b_len: u32) -> u32 {
    var begin = max(d, b_len) - b_len;
    var end = min(d, a_len);
    while begin < end {
        let middle = begin + (end - begin) / 2u;
        if comes_before({b_at}(d - 1u - middle), {a_at}(middle)) { end = middle; } else { begin = middle + 1u; }
    }
    return begin;
}
#end
#put bisect_diagonal(find_diagonal, a_at, b_at)

#if !DIAGONALS
// A tile: the begins of its parts, the elements of the first, and those of both.
struct Parts { a: u32, b: u32, of_a: u32, count: u32 }

// The parts of the tile from `d` on, of `count` elements, at least 1. `a_begin` and `a_end` are the diagonals of its ends, which
// are no parts if the elements are unsorted.
fn parts_of(d: u32, count: u32, a_begin: u32, a_end: u32) -> Parts {
    return Parts(a_begin, d - a_begin, clamp(a_end, a_begin, a_begin + count) - a_begin, count);
}

// Words of the tile: its elements, or places of elements in its parts.
var<workgroup> wg_words: array<u32, TILE>;
var<private> part_begin: u32;

fn part_a(i: u32) -> u32 { return wg_words[i]; }
fn part_b(j: u32) -> u32 { return wg_words[part_begin + j]; }
#put bisect_diagonal(find_part, part_a, part_b)

// Consecutive elements of the result, and their places in the two parts, one behind the other.
struct Merged { elements: array<u32, ITEMS>, places: array<u32, ITEMS> }

// The ITEMS elements of a thread. All threads of the workgroup call it; wg_words may be overwritten afterwards.
fn merge_items(parts: Parts, lane: u32) -> Merged {
#for k in ITEMS
    if lane + {k}u * WORKGROUP_SIZE < parts.count {
        let p = lane + {k}u * WORKGROUP_SIZE;
        if p < parts.of_a { wg_words[p] = a_at(parts.a + p); } else { wg_words[p] = b_at(parts.b + p - parts.of_a); }
    }
#end
    workgroupBarrier();
    let d = min(lane * ITEMS, parts.count);
    part_begin = parts.of_a;
    let begin = find_part(d, parts.of_a, parts.count - parts.of_a);
    var i = begin;
    var j = parts.of_a + d - begin;
    let last = parts.count - 1u;
    var x = wg_words[min(i, last)];
    var y = wg_words[min(j, last)];
    var merged = Merged();
#for k in ITEMS
    if i >= parts.of_a || j < parts.count && comes_before(y, x) {
        merged.elements[{k}] = y;
        merged.places[{k}] = j;
        j += 1u;
        y = wg_words[min(j, last)];
    } else {
        merged.elements[{k}] = x;
        merged.places[{k}] = i;
        i += 1u;
        x = wg_words[min(i, last)];
    }
#end
    workgroupBarrier();
    return merged;
}

// Writes the thread's words in order, so that the workgroup can read them with coalesced access.
fn exchange(words: array<u32, ITEMS>, lane: u32) {
#for k in ITEMS
    wg_words[lane * ITEMS + {k}u] = words[{k}];
#end
    workgroupBarrier();
}
#endif
