use super::maps::activate;
use super::prelude::*;
use crate::nn::{BatchNorm, BatchNormBackward, BatchNormTrain};

judges! {
    batch_norm => judge_batch_norm, batch_norm_train => judge_batch_norm_train,
    batch_norm_backward => judge_batch_norm_backward
}

fn judge_batch_norm(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_batch_norm_train(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, x) = (descriptor::<BatchNormTrain>(call)?, input::<f32>(call, 0)?);
    let channels = [input(call, 1)?, input(call, 2)?, input(call, 3)?, input(call, 4)?];
    let (want, bound) = (batch_norm_train(op, x, channels), batch_norm_train_bound(op, x, channels));
    let of = want.into_iter().zip(bound).enumerate();
    of.map(|(i, (want, bound))| Wanted::near(&output_shape(call, i), want, bound)).collect()
}

/// Mean and variance of a channel, with the errors of the mean and, relative, of the inverse root of the variance.
pub(super) struct ChannelMoments {
    pub(super) mean: f64,
    pub(super) variance: f64,
    pub(super) inverse: f64,
    pub(super) count: f64,
    pub(super) of_mean: f64,
    pub(super) of_variance: f64,
    pub(super) of_inverse: f64,
}

/// The longest chain of joins or additions over `count` elements: within a thread, a workgroup, and over parts.
pub(super) fn chain(count: f64) -> f64 {
    count / 256.0 + 40.0
}

/// Numbers of the elements of channel `c`.
pub(super) fn places(shape: [usize; 4], c: usize) -> impl Iterator<Item = usize> {
    let ([n, channels, h, w], plane) = (shape, shape[2] * shape[3]);
    (0..n).flat_map(move |n| (0..h * w).map(move |i| (n * channels + c) * plane + i))
}

pub(super) fn moments(shape: [usize; 4], eps: f32, x: &[f32], c: usize) -> ChannelMoments {
    let values: Vec<f64> = places(shape, c).map(|i| f64::from(x[i])).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    let (u, chain) = (ulp(1.0), chain(count));
    let largest = values.iter().fold(0f64, |most, x| most.max(x.abs()));
    let of_mean = chain * u * largest;
    let of_variance = 4.0 * chain * u * variance + 2.0 * variance.sqrt() * of_mean + of_mean * of_mean;
    let below = variance + f64::from(eps);
    let share = of_variance / below;
    // The inverse root of what is off by up to a half is off by no more than as much.
    let of_inverse = if share <= 0.5 { share + 4.0 * u } else { f64::INFINITY };
    ChannelMoments { mean, variance, inverse: 1.0 / below.sqrt(), count, of_mean, of_variance, of_inverse }
}

/// Returns the normalised `x`, the new running mean and the new running variance, for `[gamma, beta, running mean,
/// running variance]` of each channel.
pub fn batch_norm_train(op: &BatchNormTrain, x: &[f32], channels: [&[f32]; 4]) -> [Vec<f32>; 3] {
    results(op, x, channels).map(|list| list.into_iter().map(|(exact, _)| exact as f32).collect())
}

/// Bounds how far each result of the op may be from [`batch_norm_train`]: joins of means and squared differences, then
/// as [`batch_norm_bound`]. Infinite for a channel whose variance is not finite, or is nothing
/// but rounding.
pub fn batch_norm_train_bound(op: &BatchNormTrain, x: &[f32], channels: [&[f32]; 4]) -> [Vec<f64>; 3] {
    let known = |(exact, error): (f64, f64)| {
        if exact.is_finite() && !error.is_nan() { error + ulp(exact) } else { f64::INFINITY }
    };
    results(op, x, channels).map(|list| list.into_iter().map(known).collect())
}

fn results(op: &BatchNormTrain, x: &[f32], channels: [&[f32]; 4]) -> [Vec<(f64, f64)>; 3] {
    let (shape, eps, momentum, correction) = op.parts();
    let (u, momentum) = (ulp(1.0), f64::from(momentum));
    let (mut y, mut means, mut variances) = (vec![(0.0, 0.0); x.len()], Vec::new(), Vec::new());
    for c in 0..shape[1] {
        let [gamma, beta, running_mean, running_variance] = channels.map(|list| f64::from(list[c]));
        let found = moments(shape, eps, x, c);
        for i in places(shape, c) {
            let apart = f64::from(x[i]) - found.mean;
            let scaled = apart * found.inverse * gamma;
            let of_scaled = scaled.abs() * (found.of_inverse + 8.0 * u)
                + found.of_mean * (found.inverse * gamma).abs() * (1.0 + found.of_inverse);
            y[i] = (scaled + beta, of_scaled + u * (scaled + beta).abs());
        }
        let averaged = |old: f64, new: f64, of_new: f64| {
            let [kept, added] = [(1.0 - momentum) * old, momentum * new];
            (kept + added, momentum * of_new + 4.0 * u * (kept.abs() + added.abs()))
        };
        means.push(averaged(running_mean, found.mean, found.of_mean));
        let [variance, error] = [found.variance, found.of_variance].map(|v| v * correction);
        variances.push(averaged(running_variance, variance, error));
    }
    [y, means, variances]
}

fn judge_batch_norm_backward(call: &OpCall) -> Result<Vec<Wanted>> {
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
/// [`batch_norm_train_bound`], then sums over the channel. Infinite where those are.
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
#[path = "tests/batch_norm.rs"]
mod tests;
