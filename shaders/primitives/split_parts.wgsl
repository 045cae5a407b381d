// Counts the elements of each part from their numbers in order. A thread finds where its part begins and ends.
#import dispatch/extent

const WORKGROUP_SIZE: u32 = 256u;

struct Params { n: u32, parts: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> numbers: array<u32>;
@group(0) @binding(2) var<storage, read_write> counts: array<u32>;

#put extent(params.n, 0u)

// How many numbers are below x.
fn below(x: u32) -> u32 {
    var begin = 0u;
    var end = extent();
    while begin < end {
        let middle = begin + (end - begin) / 2u;
        if numbers[middle] < x { begin = middle + 1u; } else { end = middle; }
    }
    return begin;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn split_parts(@builtin(local_invocation_index) lane: u32) {
    if lane < params.parts { counts[lane] = below(lane + 1u) - below(lane); }
}
