// C = activate(alpha * op(A) op(B) + beta * C + bias), through tiles in workgroup memory, coarsened (Kirk and
// Hwu, "Programming Massively Parallel Processors", thread coarsening).
// One thread computes one row of C in COARSENING neighbouring tiles of columns, so an element of A that is
// read from workgroup memory serves for all of them; a workgroup TILE_M x TILE_N elements by TILE_M x WIDTH
// threads. Edges and loads as in gemm_tiled. Requires f16 where T is f16.
#import dense/gemm_tile_loads

#if FOUR
const COARSENING: u32 = 4u;
alias Sums = vec4<f32>;
#else
const COARSENING: u32 = 2u;
alias Sums = vec2<f32>;
#endif
const WIDTH: u32 = TILE_N / COARSENING;
const WORKGROUP_SIZE: u32 = TILE_M * WIDTH;

@compute @workgroup_size(WIDTH, TILE_M)
fn gemm_coarsened(
    @builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let origin = tile_origin(index);
    let at = origin + local.yx;
    var sums = Sums();
#if CARRY
    for (var x = 0u; x < COARSENING; x++) {
        if at.x < params.m && at.y + x * WIDTH < params.n { sums[x] = begin_sum(at.x, at.y + x * WIDTH); }
    }
#endif
    for (var first_i = params.first_k; first_i < params.end_k; first_i += TILE_K) {
        load_tile_a(origin.x, first_i, local_index);
        load_tile_b(first_i, origin.y, local_index);
        workgroupBarrier();
        for (var i = 0u; i < TILE_K; i++) {
            let x = i * PITCH_B + local.x;
#if FOUR
            let columns = Sums(wg_b[x], wg_b[x + WIDTH], wg_b[x + 2u * WIDTH], wg_b[x + 3u * WIDTH]);
#else
            let columns = Sums(wg_b[x], wg_b[x + WIDTH]);
#endif
            sums += wg_a[at_a(local.y, i)] * columns;
        }
        workgroupBarrier();
    }
    for (var x = 0u; x < COARSENING; x++) {
        if at.x < params.m && at.y + x * WIDTH < params.n { finish(at.x, at.y + x * WIDTH, sums[x]); }
    }
}
