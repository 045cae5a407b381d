// The gradient of a convolution layer with respect to its weights: the register-tiled product of dy and windows
// that are gathered from x while they are staged. k counts the outputs of all images.
#import conv/conv_product_windows

#import conv/conv_product_gradients

const BUFFERS: u32 = 2u;
#import dense/gemm_register_tiles

@compute @workgroup_size(LANES)
fn conv_gradients(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let part = part_of(index);
#import dense/gemm_register_product
}
