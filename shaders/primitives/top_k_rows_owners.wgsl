// The row of each position, as a key for a sort. One thread writes one.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { n: u32, count: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> positions: array<u32>;
@group(0) @binding(2) var<storage, read_write> rows: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_rows_owners(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at < params.count { rows[at] = positions[at] / params.n; }
}
