// C = alpha A B + beta C, A in JDS. A team sums the row at a position of the order, each lane a chunk of columns.
#import sparse/spmm_params
#import sparse/spmv_diagonals
#import sparse/spmm_dense
#import sparse/spmm_result

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmm_jds(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let place = join_team(group, lane);
    if place < params.rows && chunk < params.chunks {
        put(row_order[place], walk_diagonals(place));
    }
}
