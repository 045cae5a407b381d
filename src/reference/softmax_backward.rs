use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (n, y, dy) = (row_length(call), input::<f32>(call, 0)?, input(call, 1)?);
    let bound = softmax_backward_bound(n, y, dy);
    Ok(vec![Wanted::near(&output_shape(call, 0), softmax_backward(n, y, dy), bound)?])
}

/// Computes `y (dy - sum(y dy))` of each row of `n` elements.
pub fn softmax_backward<T: Number>(n: usize, y: &[T], dy: &[T]) -> Vec<T> {
    elements(n, y, dy).into_iter().map(|(exact, _)| T::from_f64(exact)).collect()
}

/// Bounds the error of each element: the chain of additions of the sum, and three roundings.
pub fn softmax_backward_bound<T: Number>(n: usize, y: &[T], dy: &[T]) -> Vec<f64> {
    let of = |(exact, error)| spread(T::from_f64(exact), exact, error + f64::from(f32::MIN_POSITIVE));
    elements(n, y, dy).into_iter().map(of).collect()
}

/// Returns the results with error bounds.
fn elements<T: Number>(n: usize, y: &[T], dy: &[T]) -> Vec<(f64, f64)> {
    let rows = y.chunks(n.max(1)).zip(dy.chunks(n.max(1)));
    let of_row = |(y, dy): (&[T], &[T])| {
        let pairs: Vec<(f64, f64)> = y.iter().zip(dy).map(|(y, g)| (y.to_f64(), g.to_f64())).collect();
        let total: f64 = pairs.iter().map(|(y, g)| y * g).sum();
        let size: f64 = pairs.iter().map(|(y, g)| (y * g).abs()).sum();
        let error = |y: f64, g: f64| y.abs() * ulp(1.0) * ((chain(n) + 4.0) * size + 3.0 * g.abs());
        pairs.into_iter().map(|(y, g)| (y * (g - total), error(y, g))).collect::<Vec<_>>()
    };
    rows.flat_map(of_row).collect()
}

#[cfg(test)]
#[path = "tests/softmax_backward.rs"]
mod tests;
