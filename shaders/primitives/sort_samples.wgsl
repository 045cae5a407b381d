// Draws samples of keys: thread i takes one key of part i of `count` nearly equal parts, at a place by a hash of i.
#import workgroup/index

struct Params { n: u32, count: u32, seed: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> keys: array<u32>;
@group(0) @binding(2) var<storage, read_write> samples: array<u32>;

const WORKGROUP_SIZE: u32 = 256u;

// The last steps of MurmurHash3, A. Appleby, 2008.
fn hash(word: u32) -> u32 {
    var h = word;
    h = (h ^ (h >> 16u)) * 0x85ebca6bu;
    h = (h ^ (h >> 13u)) * 0xc2b2ae35u;
    return h ^ (h >> 16u);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn sort_samples(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.count { return; }
    // The remainder is spread over all parts. Its product with a number fits a word: there are at most 2^16 samples.
    let len = params.n / params.count;
    let rest = params.n % params.count;
    let begin = i * len + i * rest / params.count;
    let end = (i + 1u) * len + (i + 1u) * rest / params.count;
    samples[i] = keys[begin + hash(i ^ params.seed) % (end - begin)];
}
