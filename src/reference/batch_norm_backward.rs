use super::batch_norm_train::{chain, moments, places};
use super::prelude::*;
use crate::nn::BatchNormBackward;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<BatchNormBackward>(call)?;
    let [x, gamma, dy] = [input(call, 0)?, input(call, 1)?, input(call, 2)?];
    let (want, bound) = (batch_norm_backward(op, x, gamma, dy), batch_norm_backward_bound(op, x, gamma, dy));
    let of = want.into_iter().zip(bound).enumerate();
    of.map(|(i, (want, bound))| Wanted::near(&output_shape(call, i), want, bound)).collect()
}

/// Returns the gradients by `x`, `gamma` and `beta`.
pub fn batch_norm_backward(op: &BatchNormBackward, x: &[f32], gamma: &[f32], dy: &[f32]) -> [Vec<f32>; 3] {
    gradients(op, x, gamma, dy).map(|list| list.into_iter().map(|(exact, _)| exact as f32).collect())
}

/// Bounds how far each result of the op may be from [`batch_norm_backward`]: statistics as of
/// [`batch_norm_train_bound`](super::batch_norm_train_bound), then sums over the channel. Infinite where those are.
pub fn batch_norm_backward_bound(op: &BatchNormBackward, x: &[f32], gamma: &[f32], dy: &[f32]) -> [Vec<f64>; 3] {
    let known = |(exact, error): (f64, f64)| {
        if exact.is_finite() && !error.is_nan() { error + ulp(exact) } else { f64::INFINITY }
    };
    gradients(op, x, gamma, dy).map(|list| list.into_iter().map(known).collect())
}

fn gradients(op: &BatchNormBackward, x: &[f32], gamma: &[f32], dy: &[f32]) -> [Vec<(f64, f64)>; 3] {
    let (shape, eps) = op.parts();
    let u = ulp(1.0);
    let (mut dx, mut dgamma, mut dbeta) = (vec![(0.0, 0.0); x.len()], Vec::new(), Vec::new());
    for (c, gamma) in gamma.iter().enumerate() {
        let found = moments(shape, eps, x, c);
        let normed = |i: usize| {
            let z = (f64::from(x[i]) - found.mean) * found.inverse;
            (z, found.of_mean * found.inverse + z.abs() * (found.of_inverse + 4.0 * u))
        };
        let chain = chain(found.count) + 4.0;
        let (mut sum, mut of_sum, mut product, mut of_product) = (0.0, 0.0, 0.0, 0.0);
        for i in places(shape, c) {
            let (g, (z, of_z)) = (f64::from(dy[i]), normed(i));
            (sum, product) = (sum + g, product + g * z);
            of_sum += chain * u * g.abs();
            of_product += g.abs() * of_z + chain * u * (g * z).abs();
        }
        let factor = f64::from(*gamma) * found.inverse;
        let m = found.count;
        for i in places(shape, c) {
            let (g, (z, of_z)) = (f64::from(dy[i]), normed(i));
            let inner = g - sum / m - z * product / m;
            let terms = g.abs() + (sum / m).abs() + (z * product / m).abs();
            let of_inner = of_sum / m + z.abs() * of_product / m + of_z * (product.abs() + of_product) / m;
            let error = of_inner + 8.0 * u * terms + inner.abs() * (found.of_inverse + 4.0 * u);
            dx[i] = (factor * inner, factor.abs() * error);
        }
        dgamma.push((product, of_product));
        dbeta.push((sum, of_sum));
    }
    [dx, dgamma, dbeta]
}

#[cfg(test)]
#[path = "tests/batch_norm_backward.rs"]
mod tests;
