// C = alpha A B + beta C, A in SELL. A team sums the row at a position of the order, each lane a chunk of columns.
#import sparse/spmm_params
#import sparse/spmv_slices
#import sparse/spmm_dense
#import sparse/spmm_result

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmm_sell(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let place = join_team(group, lane);
    // Slices may have more positions than there are rows.
    if place < params.rows && chunk < params.chunks {
        put(row_order[place], walk_slice(place));
    }
}
