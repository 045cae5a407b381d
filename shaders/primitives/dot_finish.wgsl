// Sums partial sums by one workgroup and stores an element.
#import element/f32 as element
#import op/add as op
#import workgroup/reduce

const WORKGROUP_SIZE: u32 = 256u;
alias Acc = T;

struct Params { parts: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partials: array<T>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn dot_finish(@builtin(local_invocation_index) lane: u32) {
    var sum = T(0);
    for (var at = lane; at < params.parts; at += WORKGROUP_SIZE) { sum += partials[at]; }
    let total = workgroup_reduce(sum, lane);
    if lane == 0u { output[0] = insertBits(output[0], encode(total, total), 0u, 32u / PACK); }
}
