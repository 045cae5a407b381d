// C = activate(alpha * sum + beta * C + bias), where `slabs` holds the sums of params.slices slices of k, m x n
// each: the second pass of a product whose k is split over workgroups.
// One thread adds one element of C, slice by slice; a workgroup TILE_M x TILE_N of them, columns along
// x. Requires f16 where T is f16.
#import dense/gemm_epilogue

@group(0) @binding(1) var<storage, read> slabs: array<f32>;

@compute @workgroup_size(TILE_N, TILE_M)
fn gemm_slabs(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let index = workgroup_index(workgroup);
    let at = tile_origin(index) + local.yx;
    if index >= params.tiles || at.x >= params.m || at.y >= params.n { return; }
    var sum = 0.0;
    for (var slice = 0u; slice < params.slices; slice++) {
        sum += slabs[(slice * params.m + at.x) * params.n + at.y];
    }
    finish(at.x, at.y, sum);
}
