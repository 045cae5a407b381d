// C = alpha A B + beta C, A in CSR. One thread sums an element of C; neighbouring threads have neighbouring columns.
#import sparse/spmm_params
#import sparse/spmv_rows
#import sparse/spmm_dense
#import sparse/spmm_result

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmm_csr_scalar(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let row = at / params.chunks;
    if row >= params.rows {
        return;
    }
    chunk = at % params.chunks;
    let range = row_range(row);
    var sum = 0.0;
    for (var i = range.x; i < range.y; i++) {
        sum += product(value(i), col_idxs[i]);
    }
    put(row, sum);
}
