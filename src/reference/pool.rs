use super::maps::{activate, activation_errors};
use super::prelude::*;
use crate::nn::{MeanPool, Pool2d, Pool2dBackward, Pool2dBackwardWeights, PoolKind, Windows};

judges! {
    pool => judge_pool, pool_backward => judge_pool_backward,
    pool_backward_weights => judge_pool_backward_weights, mean_pool => judge_mean_pool
}

fn judge_pool(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Pool2d>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (x, bias) = (input::<T>(call, 0)?, named(call, "bias")?);
        let bound = pool_bound(op, x, bias)?;
        Ok(vec![Wanted::near(&output_shape(call, 0), pool(op, x, bias)?, bound)?])
    })
}

/// Pools `x`, with a bias for each channel if one is given.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape) if the windows do not fit.
pub fn pool<T: Number>(op: &Pool2d, x: &[T], bias: Option<&[T]>) -> Result<Vec<T>> {
    Ok(numbers(op, x, bias)?.iter().map(|y| T::from_f64(y.exact)).collect())
}

/// Bounds the error of each result: 0 for a maximum; else the chain of additions, the division or root (2.5 and 4.5
/// ULP), lost subnormal squares, and the activation.
pub fn pool_bound<T: Number>(op: &Pool2d, x: &[T], bias: Option<&[T]>) -> Result<Vec<f64>> {
    Ok(numbers(op, x, bias)?.iter().map(|y| spread(T::from_f64(y.exact), y.exact, y.error)).collect())
}

struct Pooled {
    exact: f64,
    error: f64,
}

fn numbers<T: Number>(op: &Pool2d, x: &[T], bias: Option<&[T]>) -> Result<Vec<Pooled>> {
    let (kind, windows, activation) = op.parts();
    let u = ulp(1.0);
    let mut all = Vec::new();
    each_window(windows, |plane, window| {
        let values: Vec<f64> = window.iter().map(|cell| x[cell.at].to_f64()).collect();
        let chain = values.len() as f64 + 6.0;
        let (mut y, mut error) = match kind {
            PoolKind::Max => (largest(&values).map_or(f64::NEG_INFINITY, |i| values[i]), 0.0),
            PoolKind::Average => {
                let all = windows.kernel[0] * windows.kernel[1];
                let cells = if windows.padding_counts { all } else { values.len().max(1) } as f64;
                let size: f64 = values.iter().map(|x| x.abs()).sum();
                (values.iter().sum::<f64>() / cells, chain * u * size / cells)
            }
            PoolKind::L2 => {
                let y = values.iter().map(|x| x * x).sum::<f64>().sqrt();
                (y, (chain * u + lost(&values)) * y)
            }
            PoolKind::Weighted(weights) => {
                let terms = window.iter().zip(&values).map(|(cell, x)| x * f64::from(weights[cell.place]));
                let size: f64 = terms.clone().map(f64::abs).sum();
                (terms.sum(), chain * u * size)
            }
        };
        if let Some(bias) = bias {
            y += bias[plane % windows.shape[1]].to_f64();
            error += u * y.abs();
        }
        let exact = activate(activation, y);
        let (slope, own) = activation_errors(activation);
        all.push(Pooled { exact, error: slope * error + own * (1.0 + exact.abs()) });
    })?;
    Ok(all)
}

/// Returns the part of the root of a sum of squares that may be lost, since subnormal squares may be flushed to 0.
pub(super) fn lost(values: &[f64]) -> f64 {
    let sum = values.iter().map(|x| x * x).sum::<f64>();
    let flushed = values.len() as f64 * f64::from(f32::MIN_POSITIVE);
    if sum == 0.0 { 0.0 } else { (flushed / sum).min(1.0) }
}

/// Returns the place of the first largest cell, or of the last NaN.
pub(super) fn largest(values: &[f64]) -> Option<usize> {
    let mut found: Option<usize> = None;
    for (i, x) in values.iter().enumerate() {
        if x.is_nan() || found.is_none_or(|best| *x > values[best]) {
            found = Some(i);
        }
    }
    found
}

/// A cell of a window inside the image.
pub(super) struct Cell {
    pub(super) at: usize,
    /// The index in the window, row by row.
    pub(super) place: usize,
}

/// Calls `visit` with plane and cells of each window, in order.
pub(super) fn each_window(windows: &Windows, mut visit: impl FnMut(usize, &[Cell])) -> Result<()> {
    let [n, c, p, q] = windows.output_shape()?;
    let [.., h, w] = windows.shape;
    let along = |window: usize, k: usize, axis: usize, size: usize| {
        let at = (window * windows.stride[axis] + k * windows.dilation[axis]).checked_sub(windows.pads[axis]);
        at.filter(|at| *at < size)
    };
    for plane in 0..n * c {
        for (i, j) in (0..p).flat_map(|i| (0..q).map(move |j| (i, j))) {
            let mut cells = Vec::new();
            for place in 0..windows.kernel[0] * windows.kernel[1] {
                let (a, b) = (place / windows.kernel[1], place % windows.kernel[1]);
                if let (Some(y), Some(x)) = (along(i, a, 0, h), along(j, b, 1, w)) {
                    cells.push(Cell { at: (plane * h + y) * w + x, place });
                }
            }
            visit(plane, &cells);
        }
    }
    Ok(())
}

fn judge_pool_backward(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_pool_backward_weights(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_mean_pool(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, lengths) = (descriptor::<MeanPool>(call)?, input(call, 1)?);
    by_input!(call, 0, [f32, f16], T => {
        let x = input::<T>(call, 0)?;
        let bound = mean_pool_bound(op, x, lengths);
        Ok(vec![Wanted::near(&output_shape(call, 0), mean_pool(op, x, lengths), bound)?])
    })
}

/// Averages the first `lengths[b]` tokens of each sequence of `x`.
pub fn mean_pool<T: Number>(op: &MeanPool, x: &[T], lengths: &[u32]) -> Vec<f32> {
    means(op, x, lengths).into_iter().map(|(exact, _)| exact as f32).collect()
}

/// Bounds the error of each element: a chain of additions, a product, and for the norm that of the squares, a root
/// and a division.
pub fn mean_pool_bound<T: Number>(op: &MeanPool, x: &[T], lengths: &[u32]) -> Vec<f64> {
    let all = means(op, x, lengths).into_iter();
    all.map(|(exact, error)| spread(exact as f32, exact, error)).collect()
}

/// Returns the results with error bounds.
fn means<T: Number>(op: &MeanPool, x: &[T], lengths: &[u32]) -> Vec<(f64, f64)> {
    let (tokens, width, normalized) = op.parts();
    let u = ulp(1.0);
    let mut all = Vec::with_capacity(lengths.len() * width);
    for (b, &len) in lengths.iter().enumerate() {
        let len = tokens.min(len as usize);
        let of = |i: usize| {
            let column = (0..len).map(|t| x[(b * tokens + t) * width + i].to_f64());
            let (sum, size) = column.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
            let share = 1.0 / len.max(1) as f64;
            (sum * share, (len as f64 + 4.0) * u * size * share)
        };
        let mut row: Vec<(f64, f64)> = (0..width).map(of).collect();
        if normalized {
            let root = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
            let norm = root(&mut row.iter().map(|m| m.0));
            // `max` alone would drop NaN.
            let norm = if norm.is_nan() { norm } else { norm.max(1e-12) };
            // By the triangle inequality the error of the norm is at most the norm of the errors of the means. A
            // subnormal mean may be flushed to 0, which matters beside a norm of 1e-12.
            for (mean, error) in row.iter_mut().filter(|(mean, error)| mean.abs() - error < LEAST_NORMAL) {
                *error += mean.abs();
            }
            let of_norm = root(&mut row.iter().map(|m| m.1)) / norm + (width as f64 + 8.0) * u;
            for (mean, error) in &mut row {
                (*mean, *error) = (*mean / norm, *error / norm + mean.abs() / norm * of_norm);
            }
        }
        all.extend(row);
    }
    all
}

#[cfg(test)]
#[path = "tests/pool.rs"]
mod tests;
