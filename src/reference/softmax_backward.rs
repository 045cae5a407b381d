//! The gradient of softmax.

use super::Number;
use super::judge::{Wanted, input, output_shape, row_length};
use super::number::{chain, spread, ulp};
use crate::error::Result;
use crate::program::OpCall;

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
mod tests {
    use super::*;

    #[test]
    fn gradient_matches_finite_differences() {
        use super::super::softmax;
        let (x, dy) = ([0.3f32, -1.0, 0.5, 2.0], [1.0f32, -2.0, 0.5, 3.0]);
        let dx = softmax_backward(4, &softmax(4, &x), &dy);
        let loss = |x: &[f32]| -> f64 {
            softmax(4, x).iter().zip(&dy).map(|(y, g)| f64::from(*y) * f64::from(*g)).sum()
        };
        super::super::assert_slopes(&x, &dx, loss);
        // A shift of all logits has no effect.
        assert!(dx.iter().sum::<f32>().abs() < 1e-6);
    }

    #[test]
    fn bound_is_small() {
        assert!(
            softmax_backward_bound(2, &[0.25f32, 0.75], &[1.0, 2.0]).iter().all(|b| *b > 0.0 && *b < 1e-5)
        );
    }
}
