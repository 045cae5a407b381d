use super::prelude::*;
use crate::nn::{LayerNorm, LayerNormBackward, RmsNorm, RmsNormBackward};

judges! {
    layer_norm => judge_layer_norm, layer_norm_backward => judge_layer_norm_backward,
    rms_norm => judge_rms_norm, rms_norm_backward => judge_rms_norm_backward
}

fn judge_layer_norm(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<LayerNorm>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (x, gamma, beta) = (input::<T>(call, 0)?, input(call, 1)?, optional_input(call, 2)?);
        let bound = layer_norm_bound(op, x, gamma, beta);
        Ok(vec![Wanted::near(&output_shape(call, 0), layer_norm(op, x, gamma, beta), bound)?])
    })
}

/// Computes the layer norm of each row of `x`; a row has the length of `gamma`. Only the epsilon of the descriptor
/// matters. Without `beta` the shift is 0.
pub fn layer_norm<T: Number>(norm: &LayerNorm, x: &[T], gamma: &[T], beta: Option<&[T]>) -> Vec<T> {
    let finish = |y: &NormedElement| T::from_f64(y.exact);
    layer_norm_elements(norm, x, gamma, beta).iter().map(finish).collect()
}

/// Bounds the error of each element: chains of additions of the mean and the variance, the inverse root (2 ULP), and
/// the roundings after it.
pub fn layer_norm_bound<T: Number>(norm: &LayerNorm, x: &[T], gamma: &[T], beta: Option<&[T]>) -> Vec<f64> {
    let of = |y: &NormedElement| spread(T::from_f64(y.exact), y.exact, y.error + f64::from(f32::MIN_POSITIVE));
    layer_norm_elements(norm, x, gamma, beta).iter().map(of).collect()
}

struct NormedElement {
    exact: f64,
    error: f64,
}

fn layer_norm_elements<T: Number>(norm: &LayerNorm, x: &[T], gamma: &[T], beta: Option<&[T]>) -> Vec<NormedElement> {
    let (n, eps, u) = (gamma.len(), f64::from(norm.epsilon()), ulp(1.0));
    let mut all = Vec::with_capacity(x.len());
    for row in x.chunks(n.max(1)) {
        let row: Vec<f64> = row.iter().map(|x| x.to_f64()).collect();
        let mean_of = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / n as f64;
        let mean = mean_of(&mut row.iter().copied());
        let variance = mean_of(&mut row.iter().map(|x| (x - mean) * (x - mean)));
        let root = 1.0 / (variance + eps).sqrt();
        // The error of the mean, absolute; of the variance, relative to the number under the root.
        let mean_error = (chain(n) + 4.0) * u * mean_of(&mut row.iter().map(|x| x.abs()));
        let off = mean_error * root;
        let variance_error = (chain(n) + 6.0) * u + 2.0 * off + off * off + of_flushed_squares(variance + eps);
        for (i, x) in row.iter().enumerate() {
            let (d, g) = (x - mean, gamma[i].to_f64());
            let b = beta.map_or(0.0, |beta| beta[i].to_f64());
            let scaled = d * root * g;
            let error = off * g.abs() + scaled.abs() * (variance_error + 6.0 * u);
            all.push(NormedElement { exact: scaled + b, error: error + u * (scaled + b).abs() });
        }
    }
    all
}

fn judge_layer_norm_backward(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<LayerNormBackward>(call)?;
    let (x, gamma, dy) = (input::<f32>(call, 0)?, input(call, 1)?, input(call, 2)?);
    each_output(call, layer_norm_backward(op, x, gamma, dy), layer_norm_backward_bound(op, x, gamma, dy))
}

/// Computes the gradients with respect to x, gamma and beta; a row has the length of `gamma`. Only the epsilon of the
/// descriptor matters.
pub fn layer_norm_backward<T: Number>(op: &LayerNormBackward, x: &[T], gamma: &[T], dy: &[T]) -> [Vec<T>; 3] {
    differentiate(true, op.epsilon(), x, gamma, dy)
        .map(|part| part.into_iter().map(|(exact, _)| T::from_f64(exact)).collect())
}

/// Bounds the error of each element: chains of additions of the means of a row and of the sums of columns, the inverse
/// root (2 ULP), and the roundings after it.
pub fn layer_norm_backward_bound<T: Number>(op: &LayerNormBackward, x: &[T], gamma: &[T], dy: &[T]) -> [Vec<f64>; 3] {
    differentiate(true, op.epsilon(), x, gamma, dy).map(|part| {
        part.into_iter()
            .map(|(exact, error)| spread(T::from_f64(exact), exact, error + f64::from(f32::MIN_POSITIVE)))
            .collect()
    })
}

/// Returns dx, dgamma and dbeta with error bounds, of layer norm (centered) or RMS norm.
pub(super) fn differentiate<T: Number>(
    centered: bool, eps: f32, x: &[T], gamma: &[T], dy: &[T],
) -> [Vec<(f64, f64)>; 3] {
    let (n, eps, u) = (gamma.len(), f64::from(eps), ulp(1.0));
    let rows = x.len().checked_div(n).unwrap_or(0);
    let mut dx = Vec::with_capacity(x.len());
    let (mut dgamma, mut dbeta) = (vec![(0.0, 0.0); n], vec![(0.0, 0.0); n]);
    // The chain of additions over rows: within a block, and over blocks.
    let columns = rows.min(320) as f64 + 8.0;
    for (x, dy) in x.chunks(n.max(1)).zip(dy.chunks(n.max(1))) {
        let numbers = |values: &[T]| values.iter().map(|v| v.to_f64()).collect::<Vec<f64>>();
        let (x, dy) = (numbers(x), numbers(dy));
        let mean_of = |values: &dyn Fn(usize) -> f64| (0..n).map(values).sum::<f64>() / n as f64;
        let mean = if centered { mean_of(&|i| x[i]) } else { 0.0 };
        let d: Vec<f64> = x.iter().map(|x| x - mean).collect();
        let square = mean_of(&|i| d[i] * d[i]) + eps;
        let s = 1.0 / square.sqrt();
        let g: Vec<f64> = dy.iter().zip(gamma).map(|(g, gamma)| g * gamma.to_f64()).collect();
        let drift = if centered { mean_of(&|i| g[i]) } else { 0.0 };
        let pull = mean_of(&|i| g[i] * d[i]) * s * s;
        let (of_g, of_gd) = (mean_of(&|i| g[i].abs()), mean_of(&|i| (g[i] * d[i]).abs()) * s * s);
        // The error of the mean, relative to the deviation; it affects d, the root and the sums.
        let off = if centered { (chain(n) + 4.0) * u * mean_of(&|i| x[i].abs()) } else { 0.0 };
        let of_root = (chain(n) + 8.0) * u + 2.0 * off * s + off * off * s * s + of_flushed_squares(square);
        for i in 0..n {
            let exact = s * (g[i] - drift - d[i] * pull);
            let sums = (chain(n) + 8.0) * u * (of_g + d[i].abs() * of_gd);
            let moved = off * (pull.abs() + d[i].abs() * s * s * of_g);
            let size = g[i].abs() + of_g + d[i].abs() * of_gd;
            dx.push((exact, s * (sums + moved + size * (of_root + 6.0 * u))));
            let term = dy[i] * d[i] * s;
            dgamma[i].0 += term;
            dgamma[i].1 += term.abs() * (columns * u + of_root + 6.0 * u) + dy[i].abs() * s * off;
            dbeta[i].0 += dy[i];
            dbeta[i].1 += dy[i].abs() * columns * u;
        }
    }
    [dx, dgamma, dbeta]
}

fn judge_rms_norm(call: &OpCall) -> Result<Vec<Wanted>> {
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
    rms_norm_elements(norm, x, gamma, beta).map(|(exact, ..)| T::from_f64(exact)).collect()
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
    rms_norm_elements(norm, x, gamma, beta).map(bound).collect()
}

/// Returns each result with and without the shift, and the relative error of flushed squares.
fn rms_norm_elements<T: Number>(
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

fn judge_rms_norm_backward(call: &OpCall) -> Result<Vec<Wanted>> {
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

/// Bounds the error of each element, as [`layer_norm_backward_bound`].
pub fn rms_norm_backward_bound<T: Number>(op: &RmsNormBackward, x: &[T], gamma: &[T], dy: &[T]) -> [Vec<f64>; 2] {
    let [dx, dgamma, _] = differentiate(false, op.epsilon(), x, gamma, dy);
    // Subnormal intermediate results may be flushed to 0.
    let least = f64::from(f32::MIN_POSITIVE);
    let of = |(exact, error)| spread(T::from_f64(exact), exact, error + least);
    [dx, dgamma].map(|part| part.into_iter().map(of).collect())
}

#[cfg(test)]
#[path = "tests/layer_norm.rs"]
mod tests;
