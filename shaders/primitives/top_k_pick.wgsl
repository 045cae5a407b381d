// Between the passes of top-k's radix select: `top_k_pick_digit` finds the digit of the k-th best from the counts,
// and clears them for the next pass; `top_k_pick_begin` clears them for the first. One workgroup.
#import dispatch/extent
#import primitives/sort_sum

const WORKGROUP_SIZE: u32 = 256u;
const BINS: u32 = 2048u;
const EACH: u32 = BINS / WORKGROUP_SIZE;

struct Params {
    k: u32,
    shift: u32, // lowest bit of the digit
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> bins: array<u32>;
// The number of the k-th best as far as it is found, and its rank among those that share its digits.
@group(0) @binding(2) var<storage, read_write> search: array<u32>;

// How many are wanted of those there are.
#put extent(params.k, 0u)

@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_pick_begin(@builtin(local_invocation_index) lane: u32) {
    for (var bin = lane; bin < BINS; bin += WORKGROUP_SIZE) { bins[bin] = 0u; }
    if lane == 0u {
        search[0] = 0u;
        search[1] = extent();
    }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_pick_digit(@builtin(local_invocation_index) lane: u32) {
    invocation = lane;
    let number = search[0];
    let rank = search[1];
    var sum = 0u;
    for (var bin = lane * EACH; bin < (lane + 1u) * EACH; bin++) { sum += bins[bin]; }
    storageBarrier();
    var less = sum_before(sum);
    for (var bin = lane * EACH; bin < (lane + 1u) * EACH; bin++) {
        let keys = bins[bin];
        bins[bin] = 0u;
        if less < rank && rank <= less + keys {
            search[0] = number | (bin << params.shift);
            search[1] = rank - less;
        }
        less += keys;
    }
}
