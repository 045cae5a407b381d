// y = alpha A x + beta y, A with as many places in every row: one invocation sums a row, and neighbouring
// invocations load neighbouring places. A row ends at its first padding.
#import sparse/spmv_params
#import sparse/spmv_grid
#import sparse/spmv_vector
#import sparse/spmv_result

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_ell(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if row >= params.rows {
        return;
    }
    put(row, walk_row(row));
}
