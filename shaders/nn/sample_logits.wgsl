// Draws a token from each row of logits: a workgroup finds the smallest logit that is kept, by its digits, and then the
// first token at which the sum of weights passes a random share of all. Weights are whole numbers of 24 bits, so that
// sums are the same in every order: exp((x - maximum) / temperature) 2^24, rounded. Logits that are NaN or minus
// infinity weigh nothing.
#import element/f32 as element
#import op/philox
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const WHOLE: f32 = 16777216.0;

struct Params {
    seed: vec2<u32>,
    stream: vec2<u32>,
    first: vec2<u32>, // block of the first row's word: low word, high word
    shift: u32, // words of that block before it
    rows: u32,
    classes: u32,
    top_k: u32, // 0 for all
    top_p: u32, // the share that is kept, in 2^-32; 0 for all
    sharpness: f32, // 1 / temperature; 0 for the first of the largest
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<u32>;
@group(0) @binding(2) var<storage, read_write> tokens: array<u32>;

// Numbers of tokens, or low and high halves of weights, of each digit or thread.
var<workgroup> wg_counts: array<atomic<u32>, WORKGROUP_SIZE>;
var<workgroup> wg_low: array<atomic<u32>, WORKGROUP_SIZE>;
var<workgroup> wg_high: array<atomic<u32>, WORKGROUP_SIZE>;
var<workgroup> wg_largest: atomic<u32>;
// The digit or thread that was picked, and what is left before it.
struct Picked { at: u32, rest: vec2<u32> }
var<workgroup> wg_picked: Picked;

const NOTHING: u32 = 0x007fffffu; // the number of minus infinity

var<private> row_begin: u32;
var<private> largest: f32;

// The place of a logit in order; NaN comes first, and -0 is 0.
fn number(x: f32) -> u32 {
    let given = bitcast<u32>(x);
    let bits = select(given, 0u, given == 0x80000000u);
    let place = bits ^ (bitcast<u32>(bitcast<i32>(bits) >> 31u) | 0x80000000u);
    return select(place, 0u, is_nan(x));
}

fn logit(i: u32) -> f32 {
    let at = row_begin + i;
    return decode(logits[at / PACK], at % PACK);
}

// Sums of 64 bits: low word, high word.
fn plus(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + u32(low < a.x));
}
fn minus(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return vec2<u32>(a.x - b.x, a.y - b.y - u32(a.x < b.x)); }
fn is_less(a: vec2<u32>, b: vec2<u32>) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
// The part of a sum: share / 2^32 of it, rounded down.
fn part(sum: vec2<u32>, share: u32) -> vec2<u32> {
    return plus(wide_product(sum.y, share), vec2<u32>(wide_product(sum.x, share).y, 0u));
}

// The weight of a logit whose number is at least `least`.
fn weight(x: f32, least: u32) -> u32 {
    let place = number(x);
    if place < max(least, NOTHING + 1u) { return 0u; }
    let share = exp((x - largest) * params.sharpness);
    return select(u32(min(share, 1.0) * WHOLE + 0.5), u32(WHOLE), x == largest);
}

fn halves_of(lane: u32) -> vec2<u32> {
    let high = atomicLoad(&wg_high[lane]);
    return plus(vec2<u32>(atomicLoad(&wg_low[lane]), 0u), vec2<u32>(high << 12u, high >> 20u));
}

fn add_weight(at: u32, w: u32) {
    atomicAdd(&wg_low[at], w & 0xfffu);
    atomicAdd(&wg_high[at], w >> 12u);
}

fn clear(lane: u32) {
    workgroupBarrier();
    atomicStore(&wg_counts[lane], 0u);
    atomicStore(&wg_low[lane], 0u);
    atomicStore(&wg_high[lane], 0u);
    workgroupBarrier();
}

// Counts or weights of the tokens whose numbers begin with `prefix`, by the next digit.
fn tally(lane: u32, prefix: u32, digit: u32, least: u32, weights: bool) {
    clear(lane);
    let shift = 24u - 8u * digit;
    let mask = ~((0xffffffffu >> (8u * digit)));
    for (var i = lane; i < params.classes; i += WORKGROUP_SIZE) {
        let x = logit(i);
        let place = number(x);
        if place > NOTHING && place >= least && (digit == 0u || (place & mask) == prefix) {
            let at = (place >> shift) & 0xffu;
            if weights { add_weight(at, weight(x, least)); } else { atomicAdd(&wg_counts[at], 1u); }
        }
    }
    workgroupBarrier();
}

// The digit, from the largest on, at which what was tallied reaches `wanted`; and what is missing before it. One
// thread.
fn pick_digit(wanted: vec2<u32>, weights: bool) -> Picked {
    var rest = wanted;
    for (var at = 255u; at > 0u; at--) {
        var here = vec2<u32>(atomicLoad(&wg_counts[at]), 0u);
        if weights { here = halves_of(at); }
        if !is_less(here, rest) { return Picked(at, rest); }
        rest = minus(rest, here);
    }
    return Picked(0u, rest);
}

// The smallest number that is kept so that the tokens, or their weights, reach `wanted`.
fn least_of(lane: u32, wanted: vec2<u32>, least: u32, weights: bool) -> u32 {
    var prefix = 0u;
    var rest = wanted;
    for (var digit = 0u; digit < 4u; digit++) {
        tally(lane, prefix, digit, least, weights);
        if lane == 0u { wg_picked = pick_digit(rest, weights); }
        let picked = workgroupUniformLoad(&wg_picked);
        prefix |= picked.at << (24u - 8u * digit);
        rest = picked.rest;
    }
    return max(prefix, least);
}

// The sums of weights of the tokens from `begin` on, `each` a thread, all of them before `end`.
fn sum_parts(lane: u32, begin: u32, each: u32, end: u32, least: u32) {
    clear(lane);
    let first = begin + lane * each;
    for (var i = first; i < min(first + each, end); i++) { add_weight(lane, weight(logit(i), least)); }
    workgroupBarrier();
}

fn total() -> vec2<u32> {
    var sum = vec2<u32>(0u);
    for (var at = 0u; at < WORKGROUP_SIZE; at++) { sum = plus(sum, halves_of(at)); }
    return sum;
}

// The thread at whose tokens the sum of weights passes `share`. One thread.
fn pick_part(share: vec2<u32>) -> Picked {
    var rest = share;
    for (var at = 0u; at < WORKGROUP_SIZE - 1u; at++) {
        let here = halves_of(at);
        if is_less(rest, here) { return Picked(at, rest); }
        rest = minus(rest, here);
    }
    return Picked(WORKGROUP_SIZE - 1u, rest);
}

fn random_word(row: u32) -> u32 {
    let at = params.shift + row;
    let low = params.first.x + at / 4u;
    let block = philox(vec4<u32>(low, params.first.y + u32(low < at / 4u), params.stream), params.seed);
    return block[at % 4u];
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn sample_logits(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = workgroup_index(group);
    if row >= params.rows { return; }
    row_begin = row * params.classes;
    if lane == 0u { atomicStore(&wg_largest, 0u); }
    workgroupBarrier();
    var most = 0u;
    for (var i = lane; i < params.classes; i += WORKGROUP_SIZE) { most = max(most, number(logit(i))); }
    atomicMax(&wg_largest, most);
    workgroupBarrier();
    let top = atomicLoad(&wg_largest);
    largest = bitcast<f32>(select(~top, top ^ 0x80000000u, top >= 0x80000000u));
    var least = NOTHING + 1u;
    if params.sharpness == 0.0 {
        least = max(least, top);
    } else {
        if params.top_k > 0u { least = least_of(lane, vec2<u32>(params.top_k, 0u), least, false); }
        if params.top_p > 0u {
            sum_parts(lane, 0u, (params.classes + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE, params.classes, least);
            if lane == 0u { wg_picked = Picked(0u, part(total(), params.top_p)); }
            let wanted = workgroupUniformLoad(&wg_picked).rest;
            // A share of nothing is reached by the largest.
            least = least_of(lane, select(wanted, vec2<u32>(1u, 0u), all(wanted == vec2<u32>(0u))), least, true);
        }
    }
    // Of all tokens, then of those of a thread, until one is left.
    var begin = 0u;
    var end = params.classes;
    var share = vec2<u32>(0u);
    for (var level = 0u; level < 3u; level++) {
        let each = max((end - begin + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE, 1u);
        sum_parts(lane, begin, each, end, least);
        if lane == 0u {
            if level == 0u && params.sharpness != 0.0 { share = part(total(), random_word(row)); }
            wg_picked = pick_part(share);
        }
        let picked = workgroupUniformLoad(&wg_picked);
        begin = min(begin + picked.at * each, end - 1u);
        end = min(begin + each, end);
        share = picked.rest;
    }
    if lane == 0u { tokens[row] = select(begin, 0u, top <= NOTHING); }
}
