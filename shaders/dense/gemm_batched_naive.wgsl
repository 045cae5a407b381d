// C[b] = activate(alpha * op(A[b]) op(B[b]) + beta * C[b]). The definition.
// One thread computes one element and reads its row of op(A[b]) and its column of op(B[b]) from storage. A
// workgroup computes WORKGROUP_SIZE elements that follow each other through the matrices of the batch.
// Requires f16 where T is f16.
#import dense/gemm_factors
#import dense/gemm_epilogue

const WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn gemm_batched_naive(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let element = (params.first_tile + index) * WORKGROUP_SIZE + local;
    let size = params.m * params.n;
    let matrix = element / size;
    if matrix >= params.batch { return; }
    begin_matrix(matrix);
    let row = element % size / params.n;
    let col = element % params.n;
    var sum = begin_sum(row, col);
    for (var i = params.first_k; i < params.end_k; i++) { sum += load_a(row, i) * load_b(i, col); }
    finish(row, col, sum);
}
