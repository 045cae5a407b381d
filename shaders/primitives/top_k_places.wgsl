// Writes the position of each element of a chunk, as values for a sort. One thread writes one.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    first: u32, // elements before the part
    len: u32,   // of the part
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> positions: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_places(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at < params.len { positions[at] = params.first + at; }
}
