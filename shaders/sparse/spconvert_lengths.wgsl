// The number of entries of each row. One thread per row, or per position of the row order.
#import sparse/spconvert_params
#import sparse/spconvert_of_ell as length

@group(0) @binding(1) var<storage, read_write> lengths: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_lengths(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = item(group, lane);
    if at >= params.count {
        return;
    }
#if ORDERED
    let row = row_order[at];
    if row >= params.rows {
        return;
    }
    places[row] = at;
#else
    let row = at;
#endif
    lengths[row] = length(at);
}
