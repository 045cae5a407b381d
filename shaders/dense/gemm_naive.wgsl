// C = activate(alpha * op(A) op(B) + beta * C + bias). The definition.
// One thread computes one element of C and reads its row of op(A) and its column of op(B) from
// storage. A workgroup computes TILE_M x TILE_N elements, columns along x, so that loads along the rows
// of B and stores to C coalesce. Requires f16 where T is f16.
#import dense/gemm_factors
#import dense/gemm_epilogue as epilogue
#import dense/gemm_multiply as multiply

@compute @workgroup_size(TILE_N, TILE_M)
fn gemm_naive(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let index = workgroup_index(workgroup);
    let at = tile_origin(index) + local.yx;
    if index >= params.tiles || at.x >= params.m || at.y >= params.n { return; }
    var sum = begin_sum(at.x, at.y);
    for (var i = params.first_k; i < params.end_k; i++) {
        sum = multiply_add(load_a(at.x, i), load_b(i, at.y), sum);
    }
    finish(at.x, at.y, sum);
}
