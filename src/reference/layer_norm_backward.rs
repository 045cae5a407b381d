use super::prelude::*;
use crate::nn::LayerNormBackward;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/layer_norm_backward.rs"]
mod tests;
