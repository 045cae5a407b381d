// As gemm_register, with two tiles of each factor in workgroup memory: the next one loads while the other is
// multiplied. Requires f16 where T is f16.
#import dense/gemm_factors
#import dense/gemm_order
#import dense/gemm_end_c as end

const BUFFERS: u32 = 2u;
#import dense/gemm_register_tiles

@compute @workgroup_size(LANES)
fn gemm_double(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let part = part_of(index);
#import dense/gemm_register_product
}
