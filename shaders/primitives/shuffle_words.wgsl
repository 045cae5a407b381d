// The random words that a shuffle sorts by: stream 0 of Philox. One thread makes four and stores them.
#import op/philox
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    seed: vec2<u32>, // low and high word
    n: u32,
    pad: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn shuffle_words(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let block = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let four = philox(vec4<u32>(block, 0u, 0u, 0u), params.seed);
    for (var i = 0u; i < 4u; i++) {
        if 4u * block + i < params.n { words[4u * block + i] = four[i]; }
    }
}
