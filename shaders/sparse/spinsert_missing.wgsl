// The number of slots missing for entries to be inserted, summed over all rows. One thread per row.
#import sparse/spconvert_params

@group(0) @binding(1) var<storage, read> lengths: array<u32>;
@group(0) @binding(2) var<storage, read> ptrs: array<u32>;
@group(0) @binding(3) var<storage, read_write> missing: array<atomic<u32>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spinsert_missing(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = item(group, lane);
    if row >= params.count {
        return;
    }
    let wanted = lengths[row] + (ptrs[row + 1u] - ptrs[row]);
    if wanted > params.width {
        atomicAdd(&missing[0], wanted - params.width);
    }
}
