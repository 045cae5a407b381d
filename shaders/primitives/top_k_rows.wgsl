// The k best of each row, in one reading: one workgroup takes a row. Workgroup memory holds the candidates that may be
// among the k best so far; when it is full, the best k stay, and the last of them is the bound of all that follow. A
// bitonic sort finds them or, with SELECT, bisection of their numbers, bit by bit. The first bound is the k-th best of
// the best elements of the threads. A step reads ITEMS places that lie evenly in the row, so that rising or falling
// rows fill no slower than random ones. With OFFSETS rows lie between offsets, and `indices` are positions in the
// input; behind a row of fewer than k elements are zeros at no position.
#import dispatch/extent
#import primitives/sort_key
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS: u32 = 8u;
const CAPACITY: u32 = 256u; // a power of two, at least WORKGROUP_SIZE and 2 k
const NONE: u32 = 0xffffffffu; // no position, and no number better than the worst

struct Params {
    n: u32,
    k: u32,
    rows: u32,    // of the part
    before: u32,  // words of each binding before the part
    values_before: u32,
    indices_before: u32,
    steps: u32,   // ceil(n / (WORKGROUP_SIZE * ITEMS))
    first: u32,   // rows before the part
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> values: array<u32>;
@group(0) @binding(3) var<storage, read_write> indices: array<u32>;
#if OFFSETS
@group(0) @binding(4) var<storage, read> offsets: array<u32>;
#endif

#put extent(params.rows, params.first)

// Number and position of each candidate.
var<workgroup> wg_held: array<vec2<u32>, CAPACITY>;
var<workgroup> wg_taken: atomic<u32>;
var<workgroup> wg_pair: vec2<u32>;

fn goes_before(a: vec2<u32>, b: vec2<u32>) -> bool { return a.x < b.x || (a.x == b.x && a.y < b.y); }

// Sorts the first `size` candidates, a power of two.
fn sort_held(size: u32, lane: u32) {
    for (var run = 2u; run <= size; run *= 2u) {
        for (var step = run / 2u; step > 0u; step /= 2u) {
            workgroupBarrier();
            for (var i = lane; i < size / 2u; i += WORKGROUP_SIZE) {
                let at = 2u * i - (i & (step - 1u));
                let a = wg_held[at];
                let b = wg_held[at + step];
                if goes_before(b, a) == ((at & run) == 0u) {
                    wg_held[at] = b;
                    wg_held[at + step] = a;
                }
            }
        }
    }
    workgroupBarrier();
}

// The k-th candidate after a sort, for all threads; of those held, k stay.
fn kth(lane: u32) -> vec2<u32> {
    if lane == 0u { wg_pair = wg_held[params.k - 1u]; }
    return workgroupUniformLoad(&wg_pair);
}

// How many candidates were offered a place.
fn taken(lane: u32) -> u32 {
    workgroupBarrier();
    if lane == 0u { wg_pair = vec2<u32>(atomicLoad(&wg_taken)); }
    return workgroupUniformLoad(&wg_pair).x;
}

// Holds a candidate unless the bound goes before it; false if there is no room.
fn take(number: u32, position: u32, bound: vec2<u32>) -> bool {
    if number > bound.x || goes_before(bound, vec2<u32>(number, position)) { return true; }
    let slot = atomicAdd(&wg_taken, 1u);
    if slot < CAPACITY { wg_held[slot] = vec2<u32>(number, position); }
    return slot < CAPACITY;
}

#if SELECT
const EACH: u32 = CAPACITY / WORKGROUP_SIZE;

var<workgroup> wg_counts: array<atomic<u32>, 2>;

// The sum of a number of each thread. Calls count rounds, so that one counter is cleared while the other is used.
fn sum_threads(own: u32, round: u32, lane: u32) -> u32 {
    atomicAdd(&wg_counts[round % 2u], own);
    workgroupBarrier();
    let sum = atomicLoad(&wg_counts[round % 2u]);
    if lane == 0u { atomicStore(&wg_counts[1u - round % 2u], 0u); }
    workgroupBarrier();
    return sum;
}

// Leaves the best k of the first `count` candidates, in any order, and gives the last of them.
fn keep_best(count: u32, lane: u32) -> vec2<u32> {
    if lane < 2u { atomicStore(&wg_counts[lane], 0u); }
#for i in EACH
    var held_{i} = vec2<u32>(NONE);
    if lane + {i}u * WORKGROUP_SIZE < count { held_{i} = wg_held[lane + {i}u * WORKGROUP_SIZE]; }
#end
    workgroupBarrier();
    if lane == 0u { atomicStore(&wg_taken, 0u); }
    // The least number that k candidates are not above and, if more are not, the least position behind which k are not.
    var last = vec2<u32>(0u);
    var not_above = CAPACITY;
    for (var round = 0u; round < 32u; round++) {
        let below = last.x | (0x7fffffffu >> round);
        var own = 0u;
#for i in EACH
        own += select(0u, 1u, held_{i}.x <= below);
#end
        let sum = sum_threads(own, round, lane);
        if sum < params.k { last.x = below + 1u; } else { not_above = sum; }
    }
    if lane == 0u { wg_pair = vec2<u32>(not_above); }
    if workgroupUniformLoad(&wg_pair).x > params.k {
        for (var round = 0u; round < 32u; round++) {
            let below = last.y | (0x7fffffffu >> round);
            var own = 0u;
#for i in EACH
            own += select(0u, 1u, !goes_before(vec2<u32>(last.x, below), held_{i}));
#end
            if sum_threads(own, round, lane) < params.k { last.y = below + 1u; }
        }
    } else {
        last.y = NONE;
    }
#for i in EACH
    if !goes_before(last, held_{i}) && held_{i}.y != NONE { wg_held[atomicAdd(&wg_taken, 1u)] = held_{i}; }
#end
    workgroupBarrier();
    return last;
}

#endif
@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_rows(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = workgroup_index(group);
    if row >= extent() { return; }
#if OFFSETS
    let first = min(offsets[row], params.n);
    let n = max(min(offsets[row + 1u], params.n), first) - first;
    let steps = n / (WORKGROUP_SIZE * ITEMS) + select(0u, 1u, n % (WORKGROUP_SIZE * ITEMS) > 0u);
#else
    let first = params.before + row * params.n;
    let n = params.n;
    let steps = params.steps;
#endif
    let apart = steps * WORKGROUP_SIZE;
    var bound = vec2<u32>(NONE, NONE);
    if lane == 0u { atomicStore(&wg_taken, 0u); }
    for (var step = 0u; step < steps; step++) {
        let at_0 = step * WORKGROUP_SIZE + lane;
#for i in 1..ITEMS
        let at_{i} = at_{i - 1} + apart;
#end
#for i in ITEMS
        let key_{i} = input[first + min(at_{i}, n - 1u)];
#end
#for i in ITEMS
        let number_{i} = order(key_{i});
        var done_{i} = at_{i} >= n;
#end
        if step == 0u && params.k <= WORKGROUP_SIZE && n > CAPACITY {
            var best = NONE;
#for i in ITEMS
            best = min(best, select(number_{i}, NONE, done_{i}));
#end
            wg_held[lane] = vec2<u32>(best, lane);
            sort_held(WORKGROUP_SIZE, lane);
            // Elements as good as this one may stand before it.
            bound = vec2<u32>(kth(lane).x, NONE);
        }
        loop {
            workgroupBarrier();
#for i in ITEMS
            if !done_{i} { done_{i} = take(number_{i}, at_{i}, bound); }
#end
            if taken(lane) <= CAPACITY { break; }
#if SELECT
            bound = keep_best(CAPACITY, lane);
#else
            sort_held(CAPACITY, lane);
            bound = kth(lane);
            if lane == 0u { atomicStore(&wg_taken, params.k); }
#endif
        }
    }
    var count = taken(lane);
#if SELECT
    if count > params.k {
        keep_best(count, lane);
        count = params.k;
    }
#endif
    var size = 2u;
    while size < count {
        size *= 2u;
    }
    for (var i = count + lane; i < size; i += WORKGROUP_SIZE) { wg_held[i] = vec2<u32>(NONE); }
    sort_held(size, lane);
    for (var i = lane; i < params.k; i += WORKGROUP_SIZE) {
#if OFFSETS
        var value = 0u;
        var position = NONE;
        if i < count {
            position = first + wg_held[i].y;
            value = input[position];
        }
#else
        let position = wg_held[i].y;
        let value = input[first + position];
#endif
        values[params.values_before + row * params.k + i] = value;
        indices[params.indices_before + row * params.k + i] = position;
    }
}
