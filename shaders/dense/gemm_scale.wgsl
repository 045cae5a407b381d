// C = activate(beta * C + bias): the rest of a matrix product when alpha or k is 0.
// One thread computes one element of C; a workgroup TILE_M x TILE_N of them, columns along x. Requires f16 where T
// is f16.
#import dense/gemm_epilogue

@compute @workgroup_size(TILE_N, TILE_M)
fn gemm_scale(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let index = workgroup_index(workgroup);
    let at = tile_origin(index) + local.yx;
    if index < params.tiles && at.x < params.m && at.y < params.n { finish(at.x, at.y, 0.0); }
}
