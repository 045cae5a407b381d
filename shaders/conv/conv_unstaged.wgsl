// A convolution layer, its gradient with respect to x, or with GRADIENTS that with respect to weights: the product of
// `conv_implicit` and `conv_gradients` with sums in registers and both factors straight from storage, for processors.
// A thread computes THREAD_M x THREAD_N sums, a workgroup TILE_M x TILE_N.
#import conv/conv_product_windows
#if GRADIENTS
#import conv/conv_product_gradients
#else
#import conv/conv_product_weights
#endif
#import dense/gemm_unstaged_tiles

@compute @workgroup_size(LANES)
fn conv_unstaged(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let part = part_of(index);
#import dense/gemm_unstaged_product
}
