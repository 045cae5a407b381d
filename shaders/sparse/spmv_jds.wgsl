// y = alpha A x + beta y, A by jagged diagonals: one invocation sums the row at a place of the order, down the
// diagonals that reach it; neighbouring invocations load neighbouring entries.
#import sparse/spmv_params
#import sparse/spmv_vector
#import sparse/spmv_result

@group(0) @binding(1) var<storage, read> row_order: array<u32>;
@group(0) @binding(2) var<storage, read> diagonal_ptrs: array<u32>;
@group(0) @binding(3) var<storage, read> col_idxs: array<u32>;
@group(0) @binding(4) var<storage, read> values: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_jds(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let place = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if place >= params.rows {
        return;
    }
    var sum = 0.0;
    for (var k = params.begin; k < params.end; k++) {
        let at = diagonal_ptrs[k] + place;
        // Diagonals grow no longer: the rows that one does not reach, none behind it does.
        if at >= min(diagonal_ptrs[k + 1u], params.entries) {
            break;
        }
        sum += product(values[at], col_idxs[at]);
    }
    put(row_order[place], sum);
}
