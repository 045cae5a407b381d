// The bin of each number as a key for a sort, or the number of bins if it is in none; then, of the sorted keys, where
// each bin begins, and the last ends. A thread finds one, by bisection.
#import dispatch/extent
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    n: u32,
    bins: u32,
    least: u32, // key of the lowest number that counts
    span: u32,  // keys from there to that of the highest
    edges: u32, // bins that a number can fall into
}
@group(0) @binding(0) var<uniform> params: Params;

#put extent(params.n, 0u)

#if OFFSETS
@group(0) @binding(1) var<storage, read> sorted: array<u32>;
@group(0) @binding(2) var<storage, read_write> offsets: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn weighted_histogram_offsets(
    @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32,
) {
    let bin = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if bin > params.bins { return; }
    var begin = 0u;
    var end = extent();
    while begin < end {
        let middle = begin + (end - begin) / 2u;
        if sorted[middle] < bin { begin = middle + 1u; } else { end = middle; }
    }
    offsets[bin] = begin;
}
#else
@group(0) @binding(1) var<storage, read> input: array<u32>;
// Keys of the lowest number of each bin.
@group(0) @binding(2) var<storage, read> edges: array<u32>;
@group(0) @binding(3) var<storage, read_write> keys: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn weighted_histogram_keys(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at >= extent() { return; }
    // The key of a NaN lies beyond those of all numbers.
    let bits = input[at];
    let key = bits ^ (bitcast<u32>(bitcast<i32>(bits) >> 31u) | 0x80000000u);
    var bin = params.bins;
    if key - params.least <= params.span {
        var begin = 1u;
        var end = params.edges;
        while begin < end {
            let middle = (begin + end) / 2u;
            if edges[middle] <= key { begin = middle + 1u; } else { end = middle; }
        }
        bin = begin - 1u;
    }
    keys[at] = bin;
}
#endif
