// C = activate(alpha * op(A) op(B) + beta * C + bias), with sums in registers and tiles of both factors staged through
// workgroup memory. A thread computes THREAD_M x THREAD_N elements of C, a workgroup TILE_M x TILE_N, TILE_K steps
// of k at a time. With BYTES an element of a factor is a word of four signed bytes along k, and sums are of i32.
// Requires f16 where T is f16.
#import dense/gemm_factors
#import dense/gemm_order
#import dense/gemm_end_c as end

const BUFFERS: u32 = 1u;
#import dense/gemm_register_tiles

@compute @workgroup_size(LANES)
fn gemm_register(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let part = part_of(index);
#import dense/gemm_register_product
}
