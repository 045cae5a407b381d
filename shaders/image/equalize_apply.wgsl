// Replaces each element by its entry in the table of its channel: one thread maps a word of four bytes or (HALVES) two
// f16, or one float. Tables are read from memory or, with SHARED, from a copy in workgroup memory.
#import workgroup/index
#import element/is_nan

const WORKGROUP_SIZE: u32 = 256u;
const BINS: u32 = 256u;
const TABLES: u32 = 1u; // channels that have one; a further one is left as it is

struct Params {
    len: u32,      // elements
    channels: u32,
    plane: u32,    // elements from a channel to the next: 1, or a plane's
    lo: f32,       // ends of the range of floats
    hi: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
alias Entry = f32; // of bytes u32
alias Word = f32;  // of bytes and f16 u32
@group(0) @binding(1) var<storage, read> input: array<Word>;
@group(0) @binding(2) var<storage, read> tables: array<Entry>;
@group(0) @binding(3) var<storage, read_write> output: array<Word>;

#if SHARED
var<workgroup> wg_tables: array<Entry, TABLES * BINS>;

fn entry(i: u32) -> Entry { return wg_tables[i]; }
#else
fn entry(i: u32) -> Entry { return tables[i]; }
#endif

// The channel of element `i`.
fn channel_of(i: u32) -> u32 { return i / params.plane % params.channels; }

#if BYTES
const ITEMS: u32 = 4u;

fn apply(at: u32) {
    let word = input[at];
    let count = min(4u, params.len - 4u * at);
    var result = 0u;
    for (var i = 0u; i < count; i++) {
        let value = (word >> (8u * i)) & 255u;
        let channel = channel_of(4u * at + i);
        var level = value;
        if channel < TABLES { level = entry(channel * BINS + value); }
        result |= level << (8u * i);
    }
    if count < 4u {
        // What lies behind the image keeps its bits.
        let mask = (1u << (8u * count)) - 1u;
        result |= output[at] & ~mask;
    }
    output[at] = result;
}
#else
// Between the middles of bins along a line; beyond the first and last as there.
fn level(value: f32, at: u32) -> f32 {
    let channel = channel_of(at);
    if channel >= TABLES || is_nan(value) { return value; }
    let place = (value - params.lo) / (params.hi - params.lo) * f32(BINS) - 0.5;
    let inside = clamp(place, 0.0, f32(BINS - 1u));
    let below = min(u32(inside), BINS - 2u);
    let first = entry(channel * BINS + below);
    let second = entry(channel * BINS + below + 1u);
    return first + (inside - f32(below)) * (second - first);
}

#if HALVES
#import element/f16
const ITEMS: u32 = 2u;

fn apply(at: u32) {
    let word = input[at];
    let first = 2u * at;
    let second = level(decode(word, 1u), first + 1u);
    var result = encode(level(decode(word, 0u), first), second);
    if first + 1u == params.len {
        // What lies behind the image keeps its bits.
        result = (result & 0xffffu) | (output[at] & 0xffff0000u);
    }
    output[at] = result;
}
#else
const ITEMS: u32 = 1u;

fn apply(at: u32) { output[at] = level(input[at], at); }
#endif
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn equalize_apply(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
#if SHARED
    for (var i = lane; i < TABLES * BINS; i += WORKGROUP_SIZE) { wg_tables[i] = tables[i]; }
    workgroupBarrier();
#endif
    let work = (params.len - 1u) / ITEMS + 1u;
    let first = workgroup_index(group) * WORKGROUP_SIZE * RUNS + lane;
    for (var run = 0u; run < RUNS; run++) {
        let at = first + run * WORKGROUP_SIZE;
        if at < work { apply(at); }
    }
}

// Words or floats a thread.
const RUNS: u32 = 8u;
