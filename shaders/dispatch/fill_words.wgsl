// Sets every word: to `low` where its number is even, to `high` where it is odd. One invocation writes four words, a
// workgroup 1024.
#import workgroup/index

struct Params { words: u32, low: u32, high: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;

const WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn fill_words(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = 4u * WORKGROUP_SIZE * workgroup_index(group) + lane;
    for (var i = 0u; i < 4u; i++) {
        let at = first + i * WORKGROUP_SIZE;
        if at < params.words { output[at] = select(params.low, params.high, (at & 1u) == 1u); }
    }
}
