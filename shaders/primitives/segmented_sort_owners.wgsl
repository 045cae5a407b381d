// The segment of each position, as a key for a sort: the number of offsets that are at most the position, by bisection,
// which ends within the offsets whatever they hold. One thread writes one.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { count: u32, offsets: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> offsets: array<u32>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read_write> owners: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn segmented_sort_owners(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    let position = positions[at];
    var begin = 0u;
    var end = params.offsets;
    while begin < end {
        let middle = begin + (end - begin) / 2u;
        if offsets[middle] <= position { begin = middle + 1u; } else { end = middle; }
    }
    owners[at] = begin;
}
