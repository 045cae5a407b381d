// C = alpha A B + beta C, A in CSR. A team sums a row, each lane a chunk of columns, so that loads of B coalesce.
#import sparse/spmm_params
#import sparse/spmv_rows
#import sparse/spmm_dense
#import sparse/spmv_walk
#import sparse/spmm_result

const PADDED: bool = false;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmm_csr_vector(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = join_team(group, lane);
    if row < params.rows && chunk < params.chunks {
        let range = row_range(row);
        put(row, walk(range.x, range.y, 1u));
    }
}
