// C = activate(alpha * op(A) op(B) + beta * C + bias), with sums in registers: as gemm_register_direct, but with a tile
// of op(A) staged through workgroup memory too, so that the loads of both factors coalesce. Requires f16 where T is
// f16.
#import dense/gemm_factors
#import dense/gemm_end_c
#import dense/gemm_register_columns

// An odd pitch spreads the rows that threads read over the banks.
const PITCH_A: u32 = TILE_K | 1u;

var<workgroup> wg_a: array<f32, TILE_M * PITCH_A>;

@compute @workgroup_size(TILE_M)
fn gemm_register_staged(
    @builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local_index: u32,
) {
#import dense/gemm_register_row
}
