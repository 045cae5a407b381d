// y = alpha A x + beta y, A in JDS. One thread sums the row at a position of the order; neighbouring threads load
// neighbouring entries.
#import sparse/spmv_params
#import sparse/spmv_diagonals
#import sparse/spmv_vector
#import sparse/spmv_result

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_jds(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let place = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if place >= params.rows {
        return;
    }
    put(row_order[place], walk_diagonals(place));
}
