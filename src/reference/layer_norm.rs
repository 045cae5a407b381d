use super::prelude::*;
use crate::nn::LayerNorm;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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
    elements(norm, x, gamma, beta).iter().map(finish).collect()
}

/// Bounds the error of each element: chains of additions of the mean and the variance, the inverse root (2 ULP), and
/// the roundings after it.
pub fn layer_norm_bound<T: Number>(norm: &LayerNorm, x: &[T], gamma: &[T], beta: Option<&[T]>) -> Vec<f64> {
    let of = |y: &NormedElement| spread(T::from_f64(y.exact), y.exact, y.error + f64::from(f32::MIN_POSITIVE));
    elements(norm, x, gamma, beta).iter().map(of).collect()
}

struct NormedElement {
    exact: f64,
    error: f64,
}

fn elements<T: Number>(norm: &LayerNorm, x: &[T], gamma: &[T], beta: Option<&[T]>) -> Vec<NormedElement> {
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

#[cfg(test)]
#[path = "tests/layer_norm.rs"]
mod tests;
