use super::activation::activate;
use super::prelude::*;
use crate::nn::BatchNorm;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, x) = (descriptor::<BatchNorm>(call)?, input::<f32>(call, 0)?);
    let channels = [input(call, 1)?, input(call, 2)?, input(call, 3)?, input(call, 4)?];
    let bound = batch_norm_bound(op, x, channels);
    Ok(vec![Wanted::near(&output_shape(call, 0), batch_norm(op, x, channels), bound)?])
}

/// Normalises `x` by `[mean, variance, gamma, beta]` of each channel.
pub fn batch_norm<T: Number>(op: &BatchNorm, x: &[T], channels: [&[T]; 4]) -> Vec<T> {
    elements(op, x, channels).map(|(exact, _)| T::from_f64(exact)).collect()
}

/// Bounds the error of each element: a difference, an inverse square root (2 ULP), two products, a sum, and the
/// activation.
pub fn batch_norm_bound<T: Number>(op: &BatchNorm, x: &[T], channels: [&[T]; 4]) -> Vec<f64> {
    elements(op, x, channels).map(|(exact, error)| spread(T::from_f64(exact), exact, error)).collect()
}

/// Returns the results with error bounds.
fn elements<T: Number>(op: &BatchNorm, x: &[T], channels: [&[T]; 4]) -> impl Iterator<Item = (f64, f64)> {
    let ([_, c, h, w], eps, activation) = op.parts();
    x.iter().enumerate().map(move |(i, x)| {
        let [mean, variance, gamma, beta] = channels.map(|values| values[i / (h * w) % c].to_f64());
        let scaled = (x.to_f64() - mean) / (variance + f64::from(eps)).sqrt() * gamma;
        let exact = activate(activation, scaled + beta);
        // The steepest slope of an activation is 1.13; its own error is a few ULP.
        let error = 1.13 * (8.0 * scaled.abs() + (scaled + beta).abs()) + 8.0 * (1.0 + exact.abs());
        (exact, error * ulp(1.0))
    })
}

#[cfg(test)]
#[path = "tests/batch_norm.rs"]
mod tests;
