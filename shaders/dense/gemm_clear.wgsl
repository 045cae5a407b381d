// Writes zeros to the m x n sums that collect the slices of a matrix product.
// One thread clears one element; a workgroup TILE_M x TILE_N of them.
#import dense/gemm_params

@group(0) @binding(1) var<storage, read_write> partial: array<f32>;

@compute @workgroup_size(TILE_N, TILE_M)
fn gemm_clear(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let index = workgroup_index(workgroup);
    let at = tile_origin(index) + local.yx;
    if index < params.tiles && at.x < params.m && at.y < params.n { partial[at.x * params.n + at.y] = 0.0; }
}
