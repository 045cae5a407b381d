// How the cells of a window become one number: MAX, of which NaN is one; else a sum, of squares for L2, of
// products for WEIGHTED.
#if MAX
// The lowest bits of all, so that a window of nothing is -infinity; no constant, since compilers refuse those.
fn begin() -> f32 {
    let bits = 0xff800000u | min(params.planes, 0u);
    return bitcast<f32>(bits);
}
fn join(a: f32, x: f32) -> f32 { return select(a, x, x > a || is_nan(x)); }
#else
fn begin() -> f32 { return 0.0; }
fn join(a: f32, x: f32) -> f32 {
#if L2
    return a + x * x;
#else
    return a + x;
#endif
}
#endif

// Of the sum, and of how many cells the mean is.
fn finish(total: f32, cells: f32) -> f32 {
#if AVERAGE
    return total / max(cells, 1.0);
#else
#if L2
    return select(sqrt(total), total, total == 0.0 || is_nan(total));
#else
    return total;
#endif
#endif
}
