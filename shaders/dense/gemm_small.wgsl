// C[b] = activate(alpha * op(A[b]) op(B[b]) + beta * C[b] + bias) for matrices whose C[b] is no larger than a tile.
// As gemm_register, but a workgroup computes PRODUCTS whole products of the batch side by side. Requires BATCHED,
// and f16 where T is f16.
#import dense/gemm_factors
#import dense/gemm_order
#import dense/gemm_end_c as end

const BUFFERS: u32 = 1u;
const SMALL: bool = true;
#import dense/gemm_register_tiles

@compute @workgroup_size(PRODUCTS * LANES)
fn gemm_small(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) invocation: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let local = invocation % LANES;
    let product = invocation / LANES;
    let matrix = (params.first_tile + index) * PRODUCTS + product;
    // Threads beyond the last product compute it too, and store nothing.
    begin_matrix(min(matrix, params.batch - 1u));
    let part = Part(vec2(0u), params.first_k, params.end_k, 0u);
#import dense/gemm_register_product
}
