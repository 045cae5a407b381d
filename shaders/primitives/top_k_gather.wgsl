// Copies the elements of the chosen chunks that lie in a part of the input, chunk by chunk. One thread copies one
// element. Beyond the last element it writes keys that are no better than any.
#import dispatch/extent
#import primitives/sort_key
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const CHUNK: u32 = 64u;

struct Params {
    n: u32,     // elements in all
    first: u32, // elements before the part
    len: u32,   // of the part
    count: u32, // elements of the chosen chunks
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read> chunks: array<u32>;
@group(0) @binding(3) var<storage, read_write> candidates: array<u32>;

#put extent(params.n, 0u)

@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_gather(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let j = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if j >= params.count { return; }
    let at = chunks[j / CHUNK] * CHUNK + j % CHUNK;
    if at >= extent() {
        candidates[j] = PAD;
    } else if at >= params.first && at - params.first < params.len {
        candidates[j] = input[at - params.first];
    }
}
