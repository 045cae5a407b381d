// The length of each diagonal, from keys of rows by falling length. One thread per diagonal; the last one is empty.
#import sparse/spconvert_params
#import sparse/spconvert_key

@group(0) @binding(1) var<storage, read> keys: array<Key>;
@group(0) @binding(2) var<storage, read_write> lengths: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_diagonals(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let diagonal = item(group, lane);
    if diagonal >= params.count {
        return;
    }
    var low = 0u;
    var high = params.rows;
    while low < high {
        let middle = low + (high - low) / 2u;
        if minor_of(keys[middle]) < params.longest - diagonal {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    lengths[diagonal] = low;
}
