// Counts indices that are not below `rows`. A thread checks four, a workgroup 1024.
#import dispatch/extent
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { count: u32, rows: u32, before: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> invalid: atomic<u32>;

#put extent(params.count, params.before)

@compute @workgroup_size(WORKGROUP_SIZE)
fn gather_check(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = 4u * WORKGROUP_SIZE * workgroup_index(group) + lane;
    var found = 0u;
    for (var i = 0u; i < 4u; i++) {
        let at = first + i * WORKGROUP_SIZE;
        if at < extent() { found += u32(indices[at] >= params.rows); }
    }
    // Few workgroups find any.
    if found > 0u { atomicAdd(&invalid, found); }
}
