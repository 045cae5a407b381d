// A convolution layer, or its gradient with respect to x: the register-tiled product of weights and windows that
// are gathered from x while they are staged.
#import conv/conv_product_windows
#import conv/conv_product_weights

const BUFFERS: u32 = 2u;
#import dense/gemm_register_tiles

@compute @workgroup_size(LANES)
fn conv_implicit(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let part = part_of(index);
#import dense/gemm_register_product
}
