// C = activate(alpha * op(A) op(B) + beta * C + bias), through tiles in workgroup memory (Kirk and Hwu,
// "Programming Massively Parallel Processors", tiled matrix multiplication).
// One thread computes one element of C; a workgroup TILE_M x TILE_N of them. For each TILE_K of k it
// first loads a tile of op(A) and one of op(B) together. Requires f16 where T is f16.
#import dense/gemm_tile_loads
#import dense/gemm_multiply as multiply

const WORKGROUP_SIZE: u32 = TILE_M * TILE_N;

@compute @workgroup_size(TILE_N, TILE_M)
fn gemm_tiled(
    @builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let origin = tile_origin(index);
    let at = origin + local.yx;
    let inside = at.x < params.m && at.y < params.n;
    var sum = S();
    if inside { sum = begin_sum(at.x, at.y); }
    for (var first_i = params.first_k; first_i < params.end_k; first_i += TILE_K) {
        load_tile_a(origin.x, first_i, local_index);
        load_tile_b(first_i, origin.y, local_index);
        workgroupBarrier();
        for (var i = 0u; i < TILE_K; i++) {
            sum = multiply_add(wg_a[at_a(local.y, i)], wg_b[i * PITCH_B + local.x], sum);
        }
        workgroupBarrier();
    }
    if inside { finish(at.x, at.y, sum); }
}
