// The epilogue of a matrix product with k split over workgroups: the sums of each slice of k go to a slab of their
// own in scratch, m x n each, for gemm_slabs to add. With VEC4S rows are whole vec4s.
#import dense/gemm_params

const PARTIAL_BINDING: u32 = 3u;

#if VEC4S
@group(0) @binding(PARTIAL_BINDING) var<storage, read_write> partial: array<vec4<f32>>;
#else
@group(0) @binding(PARTIAL_BINDING) var<storage, read_write> partial: array<f32>;
#endif

fn begin_four(row: u32, col: u32) -> vec4<f32> {
    return vec4<f32>();
}

fn end_four(slice: u32, row: u32, col: u32, sums: vec4<f32>) {
    if row >= params.m || col >= params.n {
        return;
    }
    let to = (slice * params.m + row) * params.n + col;
#if VEC4S
    partial[to / 4u] = sums;
#else
    partial[to] = sums.x;
    if col + 1u < params.n {
        partial[to + 1u] = sums.y;
    }
    if col + 2u < params.n {
        partial[to + 2u] = sums.z;
    }
    if col + 3u < params.n {
        partial[to + 3u] = sums.w;
    }
#endif
}
