// Finds numbers, as order() gives them to keys, in sorted keys: a thread writes how many keys come before its number,
// and how many do not come after it.
#import primitives/sort_key as order
#import workgroup/index

struct Params { n: u32, count: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> sorted: array<u32>;
@group(0) @binding(2) var<storage, read> numbers: array<u32>;
@group(0) @binding(3) var<storage, read_write> bounds: array<u32>;

const WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn sort_bounds(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= 2u * params.count { return; }
    let number = numbers[i / 2u];
    var begin = 0u;
    var end = params.n;
    while begin < end {
        let middle = begin + (end - begin) / 2u;
        let found = order(sorted[middle]);
        if found < number || (found == number && i % 2u == 1u) { begin = middle + 1u; } else { end = middle; }
    }
    bounds[i] = begin;
}
