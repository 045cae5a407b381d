// As gemm_double, for one triangle of C: with LOWER the elements with a column up to their row, with UPPER the others
// and the diagonal. A workgroup whose tile lies outside of the triangle ends at once.
#import dense/gemm_factors
#import dense/gemm_order
#import dense/gemm_end_c as end

const BUFFERS: u32 = 2u;
#import dense/gemm_register_tiles

@compute @workgroup_size(LANES)
fn syrk(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let part = part_of(index);
#if LOWER
    if part.origin.y >= part.origin.x + TILE_M { return; }
#endif
#if UPPER
    if part.origin.x >= part.origin.y + TILE_N { return; }
#endif
#import dense/gemm_register_product
}
