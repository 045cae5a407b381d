// The epilogue of a register-tiled matrix product: four sums of a row become elements of C. With WHOLE_TILES all of
// them lie inside C.
#import dense/gemm_epilogue as epilogue

fn begin_four(row: u32, col: u32) -> vec4<S> {
    var sums = vec4<S>();
#if CARRY
    if row < params.m && col < params.n {
        sums.x = begin_sum(row, col);
        if col + 1u < params.n { sums.y = begin_sum(row, col + 1u); }
        if col + 2u < params.n { sums.z = begin_sum(row, col + 2u); }
        if col + 3u < params.n { sums.w = begin_sum(row, col + 3u); }
    }
#endif
    return sums;
}

fn end_four(slice: u32, row: u32, col: u32, sums: vec4<S>) {
#if !WHOLE_TILES
    if row >= params.m || col >= params.n { return; }
#endif
#if VEC_C
    finish_four(row, col, sums);
#else
    finish(row, col, sums.x);
    if col + 1u < params.n { finish(row, col + 1u, sums.y); }
    if col + 2u < params.n { finish(row, col + 2u, sums.z); }
    if col + 3u < params.n { finish(row, col + 3u, sums.w); }
#endif
}
