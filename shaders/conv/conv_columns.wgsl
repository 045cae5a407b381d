// A convolution layer: the register-tiled product of weights and columns in memory.
#import conv/conv_product
#import conv/conv_product_weights

#if VEC_B
@group(0) @binding(2) var<storage, read> b: array<vec4<T>>;
#else
@group(0) @binding(2) var<storage, read> b: array<T>;
#endif

const BUFFERS: u32 = 2u;
#import dense/gemm_register_tiles

@compute @workgroup_size(LANES)
fn conv_columns(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let part = part_of(index);
#import dense/gemm_register_product
}
