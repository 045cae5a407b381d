// Merges two sorted sequences by merge path (O. Green, R. McColl and D. Bader, GPU Merge Path, 2012). A workgroup makes
// one tile of the result: it bisects for the parts that the tile takes, loads them into workgroup memory, and each
// thread merges ITEMS elements there. Equal elements of the first sequence come first.
// The importer declares `fn a_at(i: u32) -> u32`, `fn b_at(j: u32) -> u32`, and
// `fn comes_before(x: u32, y: u32) -> bool`.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS: u32 = 15u; // odd, so that the parts of neighbouring threads begin in different banks
const TILE: u32 = WORKGROUP_SIZE * ITEMS;
const NEAR: u32 = 15u;

// How many of the first `d` elements of the result come from the first sequence. The result is within bounds whatever
// the order of the elements.
#if DIAGONALS
// The result is between `low` and `high`, if the sequences are in order, and found fast if it is near `guess`.
fn find_diagonal(d: u32, a_len: u32, b_len: u32, low: u32, high: u32, guess: u32) -> u32 {
    let most = min(d, a_len);
    var begin = clamp(low, max(d, b_len) - b_len, most);
    var end = clamp(high, begin, most);
    // Steps from the guess grow until one passes the place.
    let near = clamp(guess, begin, end);
    var step = 64u;
    if near < end && !is_beyond(d, near) {
        begin = near + 1u;
        while step < end - begin {
            let at = begin + step;
            if is_beyond(d, at) {
                end = at;
                break;
            }
            begin = at + 1u;
            step *= 4u;
        }
    } else {
        end = near;
        while step < end - begin {
            let at = end - step;
            if !is_beyond(d, at) {
                begin = at + 1u;
                break;
            }
            end = at;
            step *= 4u;
        }
    }
    // Of four parts at once, so that the loads of three places are in flight together.
    while begin < end {
        let size = end - begin;
        let middle = vec3<u32>(begin) + vec3<u32>(size / 4u, size / 2u, size / 4u + size / 2u);
        let last = vec3<u32>(d - 1u) - middle;
        let x = vec3<u32>(a_at(middle.x), a_at(middle.y), a_at(middle.z));
        let y = vec3<u32>(b_at(last.x), b_at(last.y), b_at(last.z));
        if comes_before(y.y, x.y) {
            let before = comes_before(y.x, x.x);
            end = select(middle.y, middle.x, before);
            begin = select(middle.x + 1u, begin, before);
        } else {
            let before = comes_before(y.z, x.z);
            end = select(end, middle.z, before);
            begin = select(middle.z, middle.y, before) + 1u;
        }
    }
    return begin;
}

// Whether fewer than `at` + 1 of the first `d` elements come from the first sequence.
fn is_beyond(d: u32, at: u32) -> bool { return comes_before(b_at(d - 1u - at), a_at(at)); }
#else
fn find_part(d: u32, a_len: u32, b_len: u32) -> u32 {
    var begin = max(d, b_len) - b_len;
    var end = min(d, a_len);
#if GUESS
    // Near the place that it has if the elements lie evenly.
    let guess = clamp(u32(f32(d) * f32(a_len) / f32(max(a_len + b_len, 1u))), begin, end);
    var step = NEAR;
    if guess < end && !comes_before(second_at(d - 1u - guess), first_at(guess)) {
        begin = guess + 1u;
        while step < end - begin {
            let at = begin + step;
            if comes_before(second_at(d - 1u - at), first_at(at)) {
                end = at;
                break;
            }
            begin = at + 1u;
            step *= 8u;
        }
    } else {
        end = guess;
        while step < end - begin {
            let at = end - step;
            if !comes_before(second_at(d - 1u - at), first_at(at)) {
                begin = at + 1u;
                break;
            }
            end = at;
            step *= 8u;
        }
    }
#endif
    while begin < end {
        let middle = begin + (end - begin) / 2u;
        if comes_before(second_at(d - 1u - middle), first_at(middle)) { end = middle; } else { begin = middle + 1u; }
    }
    return begin;
}

// A tile: the begins of its parts, the elements of the first, and those of both.
struct Parts { a: u32, b: u32, of_a: u32, count: u32 }

// The parts of the tile from `d` on, of `count` elements, at least 1. `a_begin` and `a_end` are the diagonals of its
// ends, which may decrease if the elements are unsorted.
fn parts_of(d: u32, count: u32, a_begin: u32, a_end: u32) -> Parts {
    return Parts(a_begin, d - a_begin, clamp(a_end, a_begin, a_begin + count) - a_begin, count);
}

// Words of the tile: its elements, or places of elements in its parts.
// A merge looks up to ITEMS places beyond its end, where fill_beyond wrote zeros, and uses nothing of that.
var<workgroup> wg_words: array<u32, TILE + ITEMS>;

// All threads of the workgroup call it before the barrier in front of a merge.
fn fill_beyond(lane: u32) {
    if lane < ITEMS { wg_words[TILE + lane] = 0u; }
}
// Begins of the two sequences in wg_words.
var<private> first_begin: u32;
var<private> second_begin: u32;

fn first_at(i: u32) -> u32 { return wg_words[first_begin + i]; }
fn second_at(j: u32) -> u32 { return wg_words[second_begin + j]; }

// With CHECKED: 1 if a thread took other elements than its neighbours left, since the comparison is no order. The
// importer sets it before the first barrier.
#if CHECKED
var<workgroup> wg_broken: atomic<u32>;
#endif

fn is_broken() -> bool {
#if CHECKED
    return atomicLoad(&wg_broken) != 0u;
#else
    return false;
#endif
}

// Consecutive elements of the result, and their places in the two sequences, one behind the other.
struct Merged { elements: array<u32, ITEMS>, places: array<u32, ITEMS> }

// The ITEMS elements from `d` on of the merge of two sequences, which lie in wg_words from `begin` on: `of_a` elements
// and the rest of `len`. Elements beyond the end are not defined.
fn merge_run(begin: u32, of_a: u32, len: u32, d: u32) -> Merged {
    first_begin = begin;
    second_begin = begin + of_a;
    let before = find_part(d, of_a, len - of_a);
    let last = max(len, 1u) - 1u;
    var i = before;
    var x = first_at(i);
    var y = first_at(of_a + d - before);
    var merged = Merged();
#if CHECKED
    let end = min(d + ITEMS, len);
    var taken = 0u;
#endif
#for k in ITEMS
    {
        // Without branches: the threads of a subgroup take from either sequence.
        let j = of_a + d + {k}u - i;
        let takes_second = (i >= of_a) | ((j < len) & comes_before(y, x));
        merged.elements[{k}] = select(x, y, takes_second);
        merged.places[{k}] = select(i, min(j, last), takes_second);
#if CHECKED
        taken += select(0u, 1u, !takes_second && d + {k}u < len);
#endif
        i += select(1u, 0u, takes_second);
        let next = first_at(select(i, j + 1u, takes_second));
        x = select(next, x, takes_second);
        y = select(y, next, takes_second);
    }
#end
#if CHECKED
    if before + taken != find_part(end, of_a, len - of_a) { atomicStore(&wg_broken, 1u); }
#endif
    return merged;
}

// Loads a tile into wg_words, and ends with a barrier.
fn load_words(parts: Parts, lane: u32) {
    // All loads are in flight together.
#for k in ITEMS
    let p_{k} = lane + {k}u * WORKGROUP_SIZE;
    var word_{k} = 0u;
    if p_{k} < parts.of_a {
        word_{k} = a_at(parts.a + p_{k});
    } else if p_{k} < parts.count {
        word_{k} = b_at(parts.b + p_{k} - parts.of_a);
    }
#end
#for k in ITEMS
    wg_words[p_{k}] = word_{k};
#end
    fill_beyond(lane);
    workgroupBarrier();
}

// The ITEMS elements of a thread. All threads of the workgroup call it; wg_words may be overwritten afterwards.
fn merge_items(parts: Parts, lane: u32) -> Merged {
    load_words(parts, lane);
    let merged = merge_run(0u, parts.of_a, parts.count, min(lane * ITEMS, parts.count));
    workgroupBarrier();
    return merged;
}

// Writes the thread's words in order, so that the workgroup can read them with coalesced access; not if it is broken.
fn exchange(words: array<u32, ITEMS>, lane: u32) {
    if !is_broken() {
#for k in ITEMS
        wg_words[lane * ITEMS + {k}u] = words[{k}];
#end
    }
    workgroupBarrier();
}
#endif
