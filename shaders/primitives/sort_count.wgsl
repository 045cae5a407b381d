// First step of a pass of the variant `counting`: one workgroup counts the digits in its block of keys. Counts are
// stored by digit, then by block, so that a scan gives each digit of each block its position.
#import primitives/sort_key
#import primitives/sort_block

const WORKGROUP_SIZE: u32 = 128u;

@group(0) @binding(1) var<storage, read> keys_in: array<Key>;
@group(0) @binding(2) var<storage, read_write> counts: array<u32>;
#if COUNTED
@group(0) @binding(3) var<storage, read> count: array<u32>;
#endif

var<workgroup> wg_digits: array<atomic<u32>, RADIX>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn sort_count(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
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
}
