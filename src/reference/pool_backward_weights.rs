use super::pool::each_window;
use super::prelude::*;
use crate::nn::Pool2dBackwardWeights;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Pool2dBackwardWeights>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (x, dy) = (input::<T>(call, 0)?, input(call, 1)?);
        let bound = pool_backward_weights_bound(op, x, dy)?;
        Ok(vec![Wanted::near(&output_shape(call, 0), pool_backward_weights(op, x, dy)?, bound)?])
    })
}

/// Computes the gradient of weighted pooling with respect to the weights, row by row.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape) if the windows do not fit.
pub fn pool_backward_weights<T: Number>(op: &Pool2dBackwardWeights, x: &[T], dy: &[T]) -> Result<Vec<f32>> {
    Ok(sums(op, x, dy)?.iter().map(|[exact, _]| *exact as f32).collect())
}

/// Bounds the error of each element by its chain of additions: within a thread, a workgroup, and over parts.
pub fn pool_backward_weights_bound<T: Number>(op: &Pool2dBackwardWeights, x: &[T], dy: &[T]) -> Result<Vec<f64>> {
    let chain = dy.len().min(100 + dy.len() / 256) as f64 + 2.0;
    let of = |[exact, size]: &[f64; 2]| spread(*exact as f32, *exact, chain * (ulp(1.0) * size + LEAST_NORMAL));
    Ok(sums(op, x, dy)?.iter().map(of).collect())
}

fn sums<T: Number>(op: &Pool2dBackwardWeights, x: &[T], dy: &[T]) -> Result<Vec<[f64; 2]>> {
    let windows = op.parts();
    let mut sums = vec![[0.0; 2]; windows.kernel[0] * windows.kernel[1]];
    let mut gradients = dy.iter().map(|dy| dy.to_f64());
    each_window(windows, |_, window| {
        let Some(gradient) = gradients.next() else { return };
        for cell in window {
            let term = gradient * x[cell.at].to_f64();
            sums[cell.place][0] += term;
            sums[cell.place][1] += term.abs();
        }
    })?;
    Ok(sums)
}

#[cfg(test)]
#[path = "tests/pool_backward_weights.rs"]
mod tests;
