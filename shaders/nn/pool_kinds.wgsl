// Reduces the cells of a window: MAX, where NaN counts as largest; else a sum, of squares for L2, of products for
// WEIGHTED.
#if MAX
// -infinity, the result of an empty window. It is not a constant, since compilers reject constant infinities.
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

// Turns the sum over `cells` cells into the result.
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
