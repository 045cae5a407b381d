use super::prelude::*;
use crate::nn::MeanPool;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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
#[path = "tests/mean_pool.rs"]
mod tests;
