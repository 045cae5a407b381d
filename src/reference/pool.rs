use super::activation::{activate, activation_errors};
use super::prelude::*;
use crate::nn::{Pool2d, PoolKind, Windows};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/pool.rs"]
mod tests;
