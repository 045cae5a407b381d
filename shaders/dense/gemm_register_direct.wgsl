// C = activate(alpha * op(A) op(B) + beta * C + bias), with sums in registers and A read straight into one: the
// baseline of register tiling, whose loads of A do not coalesce (after Volkov and Demmel, 2008).
// One thread computes a row of TILE_N elements of C, a multiple of 4; a workgroup TILE_M such rows. Requires f16 where
// T is f16.
#import dense/gemm_factors
#import dense/gemm_end_c
#import dense/gemm_register_columns

@compute @workgroup_size(TILE_M)
fn gemm_register_direct(
    @builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local_index: u32,
) {
#import dense/gemm_register_row
}
