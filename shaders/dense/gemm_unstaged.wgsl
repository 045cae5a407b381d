// C = activate(alpha * op(A) op(B) + beta * C + bias), with sums in registers and both factors straight from storage:
// no workgroup memory and no barrier, for processors, whose caches serve the loads. A thread computes THREAD_M x
// THREAD_N elements of C, a workgroup TILE_M x TILE_N. Requires f16 where T is f16.
#import dense/gemm_factors
#import dense/gemm_order
#import dense/gemm_end_c
#import dense/gemm_unstaged_tiles

@compute @workgroup_size(LANES)
fn gemm_unstaged(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let part = part_of(index);
#import dense/gemm_unstaged_product
}
