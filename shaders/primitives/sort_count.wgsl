// First step of a pass of the variant `counting`: one workgroup, with RUNS one thread, counts the digits in its block
// of keys. Counts are stored by digit, then by block, so that a scan gives each digit of each block its position.
#import primitives/sort_block
#if RUNS
#import primitives/sort_runs
#else
#import primitives/sort_key

const WORKGROUP_SIZE: u32 = 128u;
#endif

@group(0) @binding(1) var<storage, read> keys_in: array<Key>;
@group(0) @binding(2) var<storage, read_write> counts: array<u32>;
#if COUNTED
@group(0) @binding(3) var<storage, read> count: array<u32>;
#endif

#if !RUNS
var<workgroup> wg_digits: array<atomic<u32>, RADIX>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn sort_count(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
#if RUNS
#put block_of_thread(group, lane)
    for (var digit = 0u; digit < RADIX; digit++) { wg_counters[counter(digit, lane)] = 0u; }
    for (var at = range.x; at < range.y; at++) {
        wg_counters[counter(digit_at(given_key(keys_in[at]), shift, mask), lane)] += 1u;
    }
    for (var digit = 0u; digit < RADIX; digit++) { counts[count_of(digit, block)] = wg_counters[counter(digit, lane)]; }
#else
    let block = workgroup_index(group);
    if block >= params.blocks { return; }
    for (var digit = lane; digit < RADIX; digit += WORKGROUP_SIZE) { atomicStore(&wg_digits[digit], 0u); }
    workgroupBarrier();
    let range = block_range(block);
    for (var at = range.x + lane; at < range.y; at += WORKGROUP_SIZE) {
        atomicAdd(&wg_digits[digit_at(given_key(keys_in[at]), params.shift, params.mask)], 1u);
    }
    workgroupBarrier();
    for (var digit = lane; digit < RADIX; digit += WORKGROUP_SIZE) {
        counts[digit * params.all_blocks + params.first_block + block] = atomicLoad(&wg_digits[digit]);
    }
#endif
}
