use super::layer_norm_backward::differentiate;
use super::prelude::*;
use crate::nn::RmsNormBackward;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<RmsNormBackward>(call)?;
    let (x, gamma, dy) = (input::<f32>(call, 0)?, input(call, 1)?, input(call, 2)?);
    each_output(call, rms_norm_backward(op, x, gamma, dy), rms_norm_backward_bound(op, x, gamma, dy))
}

/// Computes the gradients with respect to x and gamma; a row has the length of `gamma`. Only the epsilon of the
/// descriptor matters.
pub fn rms_norm_backward<T: Number>(op: &RmsNormBackward, x: &[T], gamma: &[T], dy: &[T]) -> [Vec<T>; 2] {
    let [dx, dgamma, _] = differentiate(false, op.epsilon(), x, gamma, dy);
    [dx, dgamma].map(|part| part.into_iter().map(|(exact, _)| T::from_f64(exact)).collect())
}

/// Bounds the error of each element, as [`layer_norm_backward_bound`](super::layer_norm_backward_bound).
pub fn rms_norm_backward_bound<T: Number>(op: &RmsNormBackward, x: &[T], gamma: &[T], dy: &[T]) -> [Vec<f64>; 2] {
    let [dx, dgamma, _] = differentiate(false, op.epsilon(), x, gamma, dy);
    // Subnormal intermediate results may be flushed to 0.
    let least = f64::from(f32::MIN_POSITIVE);
    let of = |(exact, error)| spread(T::from_f64(exact), exact, error + least);
    [dx, dgamma].map(|part| part.into_iter().map(of).collect())
}

#[cfg(test)]
#[path = "tests/rms_norm_backward.rs"]
mod tests;
