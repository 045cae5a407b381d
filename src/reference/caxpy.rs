use super::cgemm::{pair, size, times};
use super::prelude::*;
use crate::dense::Caxpy;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (alpha, x, y) = (descriptor::<Caxpy>(call)?.alpha(), input(call, 0)?, input(call, 1)?);
    let (want, bound) = (caxpy(alpha, x, y), caxpy_bound(alpha, x, y));
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

/// Returns `y` after the op, real and imaginary parts in turn, not rounded.
pub fn caxpy(alpha: [f32; 2], x: &[f32], y: &[f32]) -> Vec<f64> {
    let of = |i| {
        let ([a, b], [c, d]) = (times(alpha.map(f64::from), pair(x, i, false)), pair(y, i, false));
        [a + c, b + d]
    };
    (0..x.len() / 2).flat_map(of).collect()
}

/// Bounds the error of each part in f32. Nothing is promised where parts overflow.
pub fn caxpy_bound(alpha: [f32; 2], x: &[f32], y: &[f32]) -> Vec<f64> {
    let of = |i| {
        let alpha = size(alpha.map(f64::from));
        let all = alpha * size(pair(x, i, false)) + size(pair(y, i, false));
        let tiny = 8.0 * f64::from(f32::MIN_POSITIVE) * (1.0 + alpha);
        let overflows = all > f64::from(f32::MAX) / 4.0;
        [if overflows { f64::INFINITY } else { 8.0 * 2f64.powi(-24) * all + tiny }; 2]
    };
    (0..x.len() / 2).flat_map(of).collect()
}

#[cfg(test)]
#[path = "tests/caxpy.rs"]
mod tests;
