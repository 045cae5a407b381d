// Keys and positions for a sort by index: indices out of range become the number of rows. A thread takes one index.
#import dispatch/extent
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { count: u32, width: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
#put extent(params.count, 0u)
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> keys: array<u32>;
@group(0) @binding(3) var<storage, read_write> places: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn scatter_prepare(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= extent() { return; }
    keys[i] = min(indices[i], params.rows);
    places[i] = i;
}
