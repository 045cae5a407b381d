// C = alpha A B + beta C, A in ELL. A team sums a row, each lane a chunk of columns.
#import sparse/spmm_params
#import sparse/spmv_grid
#import sparse/spmm_dense
#import sparse/spmm_result

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmm_ell(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = join_team(group, lane);
    if row < params.rows && chunk < params.chunks {
        put(row, walk_row(row));
    }
}
