// y = alpha A x + beta y, A in CSR. One thread sums a row. Loads coalesce only if rows are very short.
#import sparse/spmv_params
#import sparse/spmv_rows
#import sparse/spmv_vector
#import sparse/spmv_walk
#import sparse/spmv_result

const PADDED: bool = false;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_csr_scalar(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if row >= params.rows {
        return;
    }
    let range = row_range(row);
    put(row, walk(range.x, range.y, 1u));
}
