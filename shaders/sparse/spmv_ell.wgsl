// y = alpha A x + beta y, A in ELL. One thread sums a row up to its first padding; neighbouring threads load
// neighbouring slots.
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
