// Copies a chunk of the sorted keys and positions. One thread copies one of each.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { len: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> keys: array<u32>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read_write> values: array<u32>;
@group(0) @binding(4) var<storage, read_write> indices: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_front(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at < params.len {
        values[at] = keys[at];
        indices[at] = positions[at];
    }
}
