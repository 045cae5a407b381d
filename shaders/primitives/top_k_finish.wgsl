// Top-k by one workgroup, for k up to CAPACITY: of all elements or, with CHUNKS, of those in the k best chunks, which
// it finds first. Candidates at least as good as a bound go to workgroup memory, and a bitonic sort by number and
// position orders them. The bound is the k-th best of the best candidates of the threads; if more than CAPACITY pass
// it, digits of number and position narrow it (radix select): no two candidates share both.
#import dispatch/extent
#import primitives/sort_key

const WORKGROUP_SIZE: u32 = 256u;
const CAPACITY: u32 = 1024u;
const CHUNK: u32 = 1024u;
const BINS: u32 = 256u;
const NONE: u32 = 0xffffffffu; // no position, and no number better than the worst

struct Params { n: u32, k: u32, chunks: u32 }
@group(0) @binding(0) var<uniform> params: Params;

#put extent(params.n, 0u)

@group(0) @binding(1) var<storage, read> vec4s: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> input: array<u32>;
@group(0) @binding(3) var<storage, read_write> values: array<u32>;
@group(0) @binding(4) var<storage, read_write> indices: array<u32>;
#if CHUNKS
@group(0) @binding(5) var<storage, read> bests: array<vec4<u32>>;

var<workgroup> wg_chunks: array<u32, CAPACITY>;
#endif

var<workgroup> wg_numbers: array<u32, CAPACITY>;
var<workgroup> wg_positions: array<u32, CAPACITY>;
var<workgroup> wg_taken: atomic<u32>;
var<workgroup> wg_bins: array<atomic<u32>, BINS>;
var<workgroup> wg_groups: array<u32, 16>;
var<workgroup> wg_word: u32;
var<workgroup> wg_search: Search;

// Where a radix select stands: digits found so far, the rank in what shares them, and how many are no worse.
struct Search {
    number: u32,
    position: u32,
    rank: u32,
    no_worse: u32,
}

// Candidates are numbered; a thread takes four neighbours at once, and has four such loads in flight.
const NEXT: u32 = 4u * WORKGROUP_SIZE;
#if IN_FLIGHT
const STEP: u32 = 4u * NEXT;
#else
const STEP: u32 = NEXT;
#endif

struct Four {
    numbers: vec4<u32>,
    positions: vec4<u32>,
}

// The position of candidate `j`, of which four follow each other.
fn place(of_chunks: bool, j: u32, count: u32) -> u32 {
#if CHUNKS
    if !of_chunks {
        let there = min(j, count - 1u);
        return select(NONE, wg_chunks[there / CHUNK] * CHUNK + there % CHUNK, j < count);
    }
#endif
    return select(NONE, j, j < count);
}

fn load(of_chunks: bool, place: u32) -> vec4<u32> {
#if CHUNKS
    if of_chunks {
        return bests[min(place, params.chunks - 1u) / 4u];
    }
#endif
    return vec4s[min(place / 4u, max(params.n / 4u, 1u) - 1u)];
}

fn four(of_chunks: bool, place: u32, words: vec4<u32>) -> Four {
    let positions = place + vec4<u32>(0u, 1u, 2u, 3u);
    let limit = select(extent(), params.chunks, of_chunks);
    let here = (positions < vec4<u32>(limit)) & vec4<bool>(place < limit);
    var numbers = words;
    if !of_chunks {
        var keys = words;
        if place < params.n && place / 4u == params.n / 4u {
            // The last elements, which fill no vec4.
            let at = min(positions, vec4<u32>(params.n - 1u));
            keys = vec4<u32>(input[at.x], input[at.y], input[at.z], 0u);
        }
        numbers = vec4<u32>(order(keys.x), order(keys.y), order(keys.z), order(keys.w));
    }
    return Four(select(vec4<u32>(NONE), numbers, here), select(vec4<u32>(NONE), positions, here));
}

var<private> four_a: Four;
#if IN_FLIGHT
var<private> four_b: Four;
var<private> four_c: Four;
var<private> four_d: Four;
#endif

// The candidates of a thread in the step at `j`.
fn load_vec4s(of_chunks: bool, j: u32, count: u32) {
    let at_a = place(of_chunks, j, count);
    let a = load(of_chunks, at_a);
#if IN_FLIGHT
    let at_b = place(of_chunks, j + NEXT, count);
    let at_c = place(of_chunks, j + 2u * NEXT, count);
    let at_d = place(of_chunks, j + 3u * NEXT, count);
    let b = load(of_chunks, at_b);
    let c = load(of_chunks, at_c);
    let d = load(of_chunks, at_d);
    four_b = four(of_chunks, at_b, b);
    four_c = four(of_chunks, at_c, c);
    four_d = four(of_chunks, at_d, d);
#endif
    four_a = four(of_chunks, at_a, a);
}

fn best_of_four(four: Four) -> u32 {
    return min(min(four.numbers.x, four.numbers.y), min(four.numbers.z, four.numbers.w));
}

fn before(a: vec2<u32>, b: vec2<u32>) -> bool { return a.x < b.x || (a.x == b.x && a.y < b.y); }

// Sorts the first `size` pairs of workgroup memory, a power of two.
fn sort_taken(size: u32, lane: u32) {
    for (var run = 2u; run <= size; run *= 2u) {
        for (var step = run / 2u; step > 0u; step /= 2u) {
            workgroupBarrier();
            for (var i = lane; i < size / 2u; i += WORKGROUP_SIZE) {
                let at = 2u * i - (i & (step - 1u));
                let a = vec2<u32>(wg_numbers[at], wg_positions[at]);
                let b = vec2<u32>(wg_numbers[at + step], wg_positions[at + step]);
                if before(b, a) == ((at & run) == 0u) {
                    wg_numbers[at] = b.x;
                    wg_positions[at] = b.y;
                    wg_numbers[at + step] = a.x;
                    wg_positions[at + step] = a.y;
                }
            }
        }
    }
    workgroupBarrier();
}

// A word that one thread has written, for all.
fn shared_word(word: u32, lane: u32) -> u32 {
    workgroupBarrier();
    if lane == 0u { wg_word = word; }
    return workgroupUniformLoad(&wg_word);
}

// A number that at least k candidates do not exceed.
fn first_bound(of_chunks: bool, count: u32, lane: u32) -> u32 {
    if params.k > WORKGROUP_SIZE || count <= CAPACITY { return NONE; }
    var best = NONE;
    for (var j = 4u * lane; j < count; j += STEP) {
        load_vec4s(of_chunks, j, count);
        best = min(best, best_of_four(four_a));
#if IN_FLIGHT
        best = min(best, min(best_of_four(four_b), min(best_of_four(four_c), best_of_four(four_d))));
#endif
    }
    workgroupBarrier();
    wg_numbers[lane] = best;
    wg_positions[lane] = lane;
    sort_taken(WORKGROUP_SIZE, lane);
    return shared_word(wg_numbers[params.k - 1u], lane);
}

// Keeps a candidate that is no worse than the bound; false when there is no room.
fn take(number: u32, position: u32, bound: vec2<u32>) -> bool {
    if before(bound, vec2<u32>(number, position)) { return true; }
    let slot = atomicAdd(&wg_taken, 1u);
    if slot < CAPACITY {
        wg_numbers[slot] = number;
        wg_positions[slot] = position;
    }
    return slot < CAPACITY;
}

fn take_four(four: Four, bound: vec2<u32>) -> bool {
    let xy = take(four.numbers.x, four.positions.x, bound) && take(four.numbers.y, four.positions.y, bound);
    return xy && take(four.numbers.z, four.positions.z, bound) && take(four.numbers.w, four.positions.w, bound);
}

// Keeps all candidates that are no worse than the bound, and gives their number: above CAPACITY if there is
// no room for them.
fn take_all(of_chunks: bool, count: u32, bound: vec2<u32>, lane: u32) -> u32 {
    workgroupBarrier();
    if lane == 0u { atomicStore(&wg_taken, 0u); }
    workgroupBarrier();
    for (var j = 4u * lane; j < count; j += STEP) {
        load_vec4s(of_chunks, j, count);
        if !take_four(four_a, bound) { break; }
#if IN_FLIGHT
        if !(take_four(four_b, bound) && take_four(four_c, bound) && take_four(four_d, bound)) { break; }
#endif
    }
    workgroupBarrier();
    return shared_word(atomicLoad(&wg_taken), lane);
}

// Digit `i` of number and position, the first four of the number.
fn digit_of(number: u32, position: u32, i: u32) -> u32 {
    return (select(position, number, i < 4u) >> (24u - 8u * (i % 4u))) % BINS;
}

// Whether a candidate has the digits before `i` that the search has found.
fn shares(number: u32, position: u32, i: u32, search: Search) -> bool {
    // All bits of the word from those digits on; none at i = 0 and 4.
    let mask = select(0xffffffffu << ((32u - 8u * (i % 4u)) % 32u), 0u, i % 4u == 0u);
    if i < 4u { return ((number ^ search.number) & mask) == 0u; }
    return number == search.number && ((position ^ search.position) & mask) == 0u;
}

// Neighbours often have the same digit: counted together, they do not meet in one word.
var<private> digit: u32;
var<private> digits: u32;

fn count_digit(next: u32) {
    if digits > 0u && next != digit {
        atomicAdd(&wg_bins[digit], digits);
        digits = 0u;
    }
    digit = next;
    digits++;
}

fn count_four(four: Four, bound: u32, i: u32, search: Search) {
    for (var at = 0u; at < 4u; at++) {
        let number = four.numbers[at];
        let position = four.positions[at];
        if position != NONE && number <= bound && shares(number, position, i, search) {
            count_digit(digit_of(number, position, i));
        }
    }
}

fn count_digits(of_chunks: bool, count: u32, bound: u32, i: u32, search: Search, lane: u32) {
    digits = 0u;
    for (var j = 4u * lane; j < count; j += STEP) {
        load_vec4s(of_chunks, j, count);
        count_four(four_a, bound, i, search);
#if IN_FLIGHT
        count_four(four_b, bound, i, search);
        count_four(four_c, bound, i, search);
        count_four(four_d, bound, i, search);
#endif
    }
    if digits > 0u { atomicAdd(&wg_bins[digit], digits); }
}

// The place in the order up to which there are k candidates or some more, but no more than CAPACITY.
fn narrow(of_chunks: bool, count: u32, bound: u32, lane: u32) -> vec2<u32> {
    var search = Search(0u, 0u, params.k, 0u);
    for (var i = 0u; i < 8u; i++) {
        for (var bin = lane; bin < BINS; bin += WORKGROUP_SIZE) { atomicStore(&wg_bins[bin], 0u); }
        workgroupBarrier();
        count_digits(of_chunks, count, bound, i, search, lane);
        workgroupBarrier();
        if lane < 16u {
            var sum = 0u;
            for (var bin = 0u; bin < 16u; bin++) { sum += atomicLoad(&wg_bins[16u * lane + bin]); }
            wg_groups[lane] = sum;
        }
        workgroupBarrier();
        if lane == 0u {
            var less = 0u;
            var group = 0u;
            while group < 15u && less + wg_groups[group] < search.rank {
                less += wg_groups[group];
                group++;
            }
            var bin = 16u * group;
            while bin < 16u * group + 15u && less + atomicLoad(&wg_bins[bin]) < search.rank {
                less += atomicLoad(&wg_bins[bin]);
                bin++;
            }
            let found = bin << (24u - 8u * (i % 4u));
            wg_search.number = search.number | select(0u, found, i < 4u);
            wg_search.position = search.position | select(found, 0u, i < 4u);
            wg_search.rank = search.rank - less;
            wg_search.no_worse = params.k - search.rank + less + atomicLoad(&wg_bins[bin]);
        }
        search = workgroupUniformLoad(&wg_search);
        if search.no_worse <= CAPACITY {
            let rest = (1u << (24u - 8u * (i % 4u))) - 1u;
            return select(
                vec2<u32>(search.number, search.position | rest),
                vec2<u32>(search.number | rest, NONE - 1u),
                i < 4u,
            );
        }
    }
    return vec2<u32>(search.number, search.position);
}

// Leaves the k best candidates in order in workgroup memory; `bound` is a number that k do not exceed.
fn choose(of_chunks: bool, count: u32, bound: u32, lane: u32) {
    var limit = vec2<u32>(bound, NONE - 1u);
    var taken = 0u;
    loop {
        taken = take_all(of_chunks, count, limit, lane);
        if taken <= CAPACITY { break; }
        limit = narrow(of_chunks, count, bound, lane);
    }
    var size = 2u;
    while size < taken {
        size *= 2u;
    }
    for (var i = taken + lane; i < size; i += WORKGROUP_SIZE) {
        wg_numbers[i] = NONE;
        wg_positions[i] = NONE;
    }
    sort_taken(size, lane);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_finish(@builtin(local_invocation_index) lane: u32) {
#if CHUNKS
    choose(true, params.chunks, first_bound(true, params.chunks, lane), lane);
    for (var i = lane; i < params.k; i += WORKGROUP_SIZE) { wg_chunks[i] = wg_positions[i]; }
    // Each of the k best chunks has an element that is no worse than this.
    choose(false, params.k * CHUNK, shared_word(wg_numbers[params.k - 1u], lane), lane);
#else
    let there = extent();
    choose(false, there, first_bound(false, there, lane), lane);
#endif
    // Fewer than k may be there.
    let found = min(params.k, extent());
    for (var i = lane; i < found; i += WORKGROUP_SIZE) {
        let position = wg_positions[i];
        values[i] = input[position];
        indices[i] = position;
    }
}
