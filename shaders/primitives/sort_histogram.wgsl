// Before the passes of the variant `onesweep`: `sort_histogram_clear` sets tickets, counts and posts to zero,
// `sort_histogram_count` counts the digits of all passes in one reading of the keys. One workgroup walks the keys in
// steps of the grid, counts in workgroup memory and adds its counts at the end.
#import primitives/sort_key
#import primitives/sort_globals
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const PASSES: u32 = 4u;

struct Params {
    n: u32,          // keys
    workgroups: u32, // that share the keys, or the words to clear
    words: u32,      // posts to clear
    begin_bit: u32,  // bits of the keys that are sorted by
    end_bit: u32,
    digit_bits: u32, // of a pass
}
@group(0) @binding(0) var<uniform> params: Params;
#if CLEAR
@group(0) @binding(1) var<storage, read_write> globals: array<u32>;
@group(0) @binding(2) var<storage, read_write> posts: array<u32>;
#if COUNTED
@group(0) @binding(3) var<storage, read> count: array<u32>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn sort_histogram_clear(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let step = params.workgroups * WORKGROUP_SIZE;
    if first >= step { return; }
    for (var i = first; i < params.words; i += step) { posts[i] = 0u; }
    for (var i = first; i < HEAD + PASSES * RADIX; i += step) {
#if COUNTED
        globals[i] = select(0u, min(params.n, count[0]), i == KEYS);
#else
        globals[i] = select(0u, params.n, i == KEYS);
#endif
    }
}
#else
@group(0) @binding(1) var<storage, read_write> globals: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> keys_in: array<Key>;

var<workgroup> wg_digits: array<atomic<u32>, PASSES * RADIX>;

fn count_key(key: Key) {
    for (var i = 0u; i < PASSES; i++) {
        let shift = min(params.begin_bit + i * params.digit_bits, params.end_bit);
        let mask = (1u << min(params.digit_bits, params.end_bit - shift)) - 1u;
        atomicAdd(&wg_digits[i * RADIX + digit_at(key, shift, mask)], 1u);
    }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn sort_histogram_count(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = workgroup_index(group);
    if index >= params.workgroups { return; }
    for (var i = lane; i < PASSES * RADIX; i += WORKGROUP_SIZE) { atomicStore(&wg_digits[i], 0u); }
    workgroupBarrier();
    let n = atomicLoad(&globals[KEYS]);
    let step = params.workgroups * WORKGROUP_SIZE;
    var at = index * WORKGROUP_SIZE + lane;
    // Four loads in flight.
    while at + 3u * step < n {
        let a = given_key(keys_in[at]);
        let b = given_key(keys_in[at + step]);
        let c = given_key(keys_in[at + 2u * step]);
        let d = given_key(keys_in[at + 3u * step]);
        count_key(a);
        count_key(b);
        count_key(c);
        count_key(d);
        at += 4u * step;
    }
    while at < n {
        count_key(given_key(keys_in[at]));
        at += step;
    }
    workgroupBarrier();
    for (var i = lane; i < PASSES * RADIX; i += WORKGROUP_SIZE) {
        let keys = atomicLoad(&wg_digits[i]);
        if keys > 0u { atomicAdd(&globals[HEAD + i], keys); }
    }
}
#endif
