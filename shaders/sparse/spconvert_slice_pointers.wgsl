// The start of each slice from the widths before it, and the total width. One thread per slice.
#import sparse/spconvert_params

@group(0) @binding(1) var<storage, read> widths: array<u32>;
@group(0) @binding(2) var<storage, read_write> slice_ptrs: array<u32>;
@group(0) @binding(3) var<storage, read_write> width: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_slice_pointers(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = item(group, lane);
    if slice >= params.count {
        return;
    }
    slice_ptrs[slice] = widths[slice] * params.width;
    if slice + 1u == params.count {
        width[0] = widths[slice];
    }
}
