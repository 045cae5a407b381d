use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (n, y, dy) = (row_length(call), input::<f32>(call, 0)?, input(call, 1)?);
    let bound = log_softmax_backward_bound(n, y, dy);
    Ok(vec![Wanted::near(&output_shape(call, 0), log_softmax_backward(n, y, dy), bound)?])
}

/// Computes `dy - exp(y) sum(dy)` of each row of `n` elements.
pub fn log_softmax_backward<T: Number>(n: usize, y: &[T], dy: &[T]) -> Vec<T> {
    elements(n, y, dy).into_iter().map(|(exact, _)| T::from_f64(exact)).collect()
}

/// Bounds the error of each element: the chain of additions of the sum, the exponential (`3 + 2 |y|` ULP), and two
/// roundings.
pub fn log_softmax_backward_bound<T: Number>(n: usize, y: &[T], dy: &[T]) -> Vec<f64> {
    let of = |(exact, error)| spread(T::from_f64(exact), exact, error);
    elements(n, y, dy).into_iter().map(of).collect()
}

/// Returns the results with error bounds.
fn elements<T: Number>(n: usize, y: &[T], dy: &[T]) -> Vec<(f64, f64)> {
    let rows = y.chunks(n.max(1)).zip(dy.chunks(n.max(1)));
    let of_row = |(y, dy): (&[T], &[T])| {
        let total: f64 = dy.iter().map(|g| g.to_f64()).sum();
        let size: f64 = dy.iter().map(|g| g.to_f64().abs()).sum();
        let of = |(y, g): (&T, &T)| {
            let (p, g) = (y.to_f64().exp(), g.to_f64());
            let exact = g - p * total;
            let of_exp = if p > 0.0 { exp_ulps(y.to_f64()) + 1.0 } else { 0.0 };
            (exact, ulp(1.0) * (p * (chain(n) * size + of_exp * total.abs()) + exact.abs() + g.abs()))
        };
        y.iter().zip(dy).map(of).collect::<Vec<_>>()
    };
    rows.flat_map(of_row).collect()
}

#[cfg(test)]
#[path = "tests/log_softmax_backward.rs"]
mod tests;
