// y = alpha A x + beta y, A with as many places in every row: one invocation sums a row, and neighbouring
// invocations load neighbouring places. A row ends at its first padding.
#import sparse/spmv_params
#import sparse/spmv_vector
#import sparse/spmv_result

@group(0) @binding(1) var<storage, read> col_idxs: array<u32>;
@group(0) @binding(2) var<storage, read> values: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_ell(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if row >= params.rows {
        return;
    }
    var sum = 0.0;
    for (var k = params.begin; k < params.end; k++) {
        let at = k * params.rows + row;
        let col = col_idxs[at];
        if col >= params.cols {
            break;
        }
        sum += values[at] * x[col];
    }
    put(row, sum);
}
