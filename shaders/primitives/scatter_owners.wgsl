// Finds for each row that is written the last index that names it: owners[number] = 1 + the largest i with indices[i] =
// number. A thread takes one index.
#import dispatch/extent
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { count: u32, width: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
#put extent(params.count, 0u)
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> owners: array<atomic<u32>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn scatter_owners(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= extent() { return; }
    let number = indices[i];
    if number < params.rows { atomicMax(&owners[number], i + 1u); }
}
