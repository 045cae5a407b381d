use super::pool::{each_window, largest, lost};
use super::prelude::*;
use crate::nn::{Pool2dBackward, PoolKind};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Pool2dBackward>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (x, dy) = (input::<T>(call, 0)?, input(call, 1)?);
        let bound = pool_backward_bound(op, x, dy)?;
        Ok(vec![Wanted::near(&output_shape(call, 0), pool_backward(op, x, dy)?, bound)?])
    })
}

/// Computes the gradient of pooling with respect to `x`.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape) if the windows do not fit.
pub fn pool_backward<T: Number>(op: &Pool2dBackward, x: &[T], dy: &[T]) -> Result<Vec<T>> {
    Ok(shares(op, x, dy)?.iter().map(|[exact, ..]| T::from_f64(*exact)).collect())
}

/// Bounds the error of each element: for each share a division (2.5 ULP) and, for L2, the sum of squares and lost
/// subnormal squares; then the chain of additions of the shares.
pub fn pool_backward_bound<T: Number>(op: &Pool2dBackward, x: &[T], dy: &[T]) -> Result<Vec<f64>> {
    let cells = op.parts().1.kernel.iter().product::<usize>() as f64;
    let error = (2.0 * cells + 10.0) * ulp(1.0);
    // Subnormal intermediate results may be flushed to 0.
    let least = f64::from(f32::MIN_POSITIVE);
    Ok(shares(op, x, dy)?
        .iter()
        .map(|&[exact, size, lost]| spread(T::from_f64(exact), exact, error * size + lost + least))
        .collect())
}

/// Returns for each element the sum of its shares, the sum of their magnitudes, and the error from subnormal squares.
fn shares<T: Number>(op: &Pool2dBackward, x: &[T], dy: &[T]) -> Result<Vec<[f64; 3]>> {
    let (kind, windows) = op.parts();
    let mut sums = vec![[0.0; 3]; x.len()];
    let mut gradients = dy.iter().map(|dy| dy.to_f64());
    each_window(windows, |_, window| {
        let Some(gradient) = gradients.next() else { return };
        let values: Vec<f64> = window.iter().map(|cell| x[cell.at].to_f64()).collect();
        let root = values.iter().map(|x| x * x).sum::<f64>().sqrt();
        // If less than half of the squares is certain, the root may be 0 and the quotient anything.
        let part = if *kind == PoolKind::L2 { lost(&values) } else { 0.0 };
        let lost = if part > 0.5 { f64::INFINITY } else { part };
        let all = windows.kernel[0] * windows.kernel[1];
        let cells = if windows.padding_counts { all } else { values.len() } as f64;
        let first = largest(&values);
        for (i, cell) in window.iter().enumerate() {
            let share = match kind {
                PoolKind::Max if first == Some(i) => gradient,
                PoolKind::Average => gradient / cells,
                PoolKind::L2 if root != 0.0 => gradient * values[i] / root,
                PoolKind::Weighted(weights) => gradient * f64::from(weights[cell.place]),
                _ => 0.0,
            };
            let sum = &mut sums[cell.at];
            sum[0] += share;
            sum[1] += share.abs();
            if share != 0.0 {
                sum[2] += share.abs() * lost;
            }
        }
    })?;
    Ok(sums)
}

#[cfg(test)]
#[path = "tests/pool_backward.rs"]
mod tests;
