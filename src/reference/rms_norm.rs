use super::prelude::*;
use crate::nn::RmsNorm;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<RmsNorm>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (x, gamma, beta) = (input::<T>(call, 0)?, input(call, 1)?, optional_input(call, 2)?);
        let bound = rms_norm_bound(op, x, gamma, beta);
        Ok(vec![Wanted::near(&output_shape(call, 0), rms_norm(op, x, gamma, beta), bound)?])
    })
}

/// Computes the RMS norm of each row of `x`; a row has the length of `gamma`. Only the epsilon of the descriptor
/// matters. Without `beta` the shift is 0.
pub fn rms_norm<T: Number>(norm: &RmsNorm, x: &[T], gamma: &[T], beta: Option<&[T]>) -> Vec<T> {
    elements(norm, x, gamma, beta).map(|(exact, ..)| T::from_f64(exact)).collect()
}

/// Bounds the error of each element: the chain of additions of the mean of squares, the inverse root (2 ULP), and the
/// roundings after it.
pub fn rms_norm_bound<T: Number>(norm: &RmsNorm, x: &[T], gamma: &[T], beta: Option<&[T]>) -> Vec<f64> {
    let rounding = (chain(gamma.len()) + 8.0) * ulp(1.0);
    let bound = |(exact, scaled, flushed): (f64, f64, f64)| {
        // Subnormal intermediate results may be flushed to 0.
        let error = (rounding + flushed) * scaled.abs() + exact.abs() * ulp(1.0) + f64::from(f32::MIN_POSITIVE);
        spread(T::from_f64(exact), exact, error)
    };
    elements(norm, x, gamma, beta).map(bound).collect()
}

/// Returns each result with and without the shift, and the relative error of flushed squares.
fn elements<T: Number>(
    norm: &RmsNorm, x: &[T], gamma: &[T], beta: Option<&[T]>,
) -> impl Iterator<Item = (f64, f64, f64)> {
    let (n, eps) = (gamma.len(), f64::from(norm.epsilon()));
    x.chunks(n.max(1)).flat_map(move |row| {
        let mean = row.iter().map(|x| x.to_f64() * x.to_f64()).sum::<f64>() / n as f64;
        let (root, flushed) = ((mean + eps).sqrt(), of_flushed_squares(mean + eps));
        row.iter().enumerate().map(move |(i, x)| {
            let scaled = x.to_f64() / root * gamma[i].to_f64();
            (scaled + beta.map_or(0.0, |beta| beta[i].to_f64()), scaled, flushed)
        })
    })
}

#[cfg(test)]
#[path = "tests/rms_norm.rs"]
mod tests;
