use super::maps::activate;
use super::prelude::*;
use super::softmax::rows;
use crate::dense::Activation;

judges! {
    cross_entropy => judge_cross_entropy, squared_error => judge_squared_error,
    binary_cross_entropy => judge_binary_cross_entropy
}

fn judge_cross_entropy(call: &OpCall) -> Result<Vec<Wanted>> {
    let classes = output_shape(call, 2).last().copied().unwrap_or(0);
    let (logits, labels) = (input::<f32>(call, 0)?, input(call, 1)?);
    let (losses, mean, gradient) = cross_entropy(classes, logits, labels);
    let (of_losses, of_mean, of_gradient) = cross_entropy_bound(classes, logits, labels);
    each_output(call, [losses, vec![mean], gradient], [of_losses, vec![of_mean], of_gradient])
}

/// Computes the loss of each row of `classes` logits, the mean, and its gradient. A label that is not a class gives
/// NaN.
pub fn cross_entropy<T: Number>(classes: usize, logits: &[T], labels: &[u32]) -> (Vec<T>, T, Vec<T>) {
    let (losses, mean, gradient) = cross_entropy_results(classes, logits, labels);
    let rounded = |values: Vec<(f64, f64)>| values.into_iter().map(|(exact, _)| T::from_f64(exact)).collect();
    (rounded(losses), T::from_f64(mean.0), rounded(gradient))
}

/// Bounds the error of each result: the sum of exponentials as in [`softmax_bound`](super::softmax_bound), its
/// logarithm (2^-21 between 0.5 and 2, else 3 ULP), differences, and the chain of additions of the mean.
pub fn cross_entropy_bound<T: Number>(classes: usize, logits: &[T], labels: &[u32]) -> (Vec<f64>, f64, Vec<f64>) {
    let (losses, mean, gradient) = cross_entropy_results(classes, logits, labels);
    let of = |(exact, error): (f64, f64)| spread(T::from_f64(exact), exact, error);
    (losses.into_iter().map(of).collect(), of(mean), gradient.into_iter().map(of).collect())
}

type Pairs = Vec<(f64, f64)>;

fn cross_entropy_results<T: Number>(classes: usize, logits: &[T], labels: &[u32]) -> (Pairs, (f64, f64), Pairs) {
    let (u, count) = (ulp(1.0), labels.len() as f64);
    let (mut losses, mut gradient) = (Vec::new(), Vec::new());
    for (row, &label) in rows(classes, logits).zip(labels) {
        let label = label as usize;
        let log = row.sum.ln();
        let sum_error = row.sum_error();
        let below = row.below.get(label).copied().unwrap_or(f64::NAN);
        let of_log = if row.sum <= 2.0 { 2f64.powi(-21) } else { 3.0 * ulp(log) };
        losses.push((log - below, sum_error + of_log + u * below.abs() + ulp(log - below)));
        for (i, d) in row.below.iter().enumerate() {
            let p = if label < classes { d.exp() / row.sum } else { f64::NAN };
            let hot = f64::from(u8::from(i == label));
            let error = p * ((exp_ulps(*d) + 4.0) * u + sum_error) + 2.0 * u * (p - hot).abs();
            gradient.push(((p - hot) / count, (error + u * (p - hot).abs()) / count));
        }
    }
    let total: f64 = losses.iter().map(|l| l.0).sum();
    let errors: f64 = losses.iter().map(|l| l.1 + chain(labels.len()) * u * l.0.abs()).sum();
    let mean = total / count;
    (losses, (mean, errors / count + 3.0 * u * mean.abs()), gradient)
}

fn judge_squared_error(call: &OpCall) -> Result<Vec<Wanted>> {
    let (x, target) = (input::<f32>(call, 0)?, input(call, 1)?);
    let (mean, gradient) = squared_error(x, target);
    let (of_mean, of_gradient) = squared_error_bound(x, target);
    each_output(call, [vec![mean], gradient], [vec![of_mean], of_gradient])
}

/// Computes the mean of `(x - target)^2`, and its gradient with respect to x.
pub fn squared_error<T: Number>(x: &[T], target: &[T]) -> (T, Vec<T>) {
    let (mean, gradient) = squared_error_results(x, target);
    (T::from_f64(mean), gradient.into_iter().map(T::from_f64).collect())
}

/// Bounds the error of each result: a difference, a product, and the chain of additions.
pub fn squared_error_bound<T: Number>(x: &[T], target: &[T]) -> (f64, Vec<f64>) {
    let (mean, gradient) = squared_error_results(x, target);
    let chain = x.len().min(300) as f64 + 8.0;
    let of = |exact: f64, ulps: f64| spread(T::from_f64(exact), exact, ulps * ulp(1.0) * exact.abs());
    (of(mean, chain), gradient.into_iter().map(|g| of(g, 3.0)).collect())
}

fn squared_error_results<T: Number>(x: &[T], target: &[T]) -> (f64, Vec<f64>) {
    let n = x.len() as f64;
    let differences: Vec<f64> = x.iter().zip(target).map(|(x, t)| x.to_f64() - t.to_f64()).collect();
    (differences.iter().map(|d| d * d).sum::<f64>() / n, differences.iter().map(|d| 2.0 * d / n).collect())
}

fn judge_binary_cross_entropy(call: &OpCall) -> Result<Vec<Wanted>> {
    let (x, target) = (input::<f32>(call, 0)?, input(call, 1)?);
    let (mean, gradient) = binary_cross_entropy(x, target);
    let (of_mean, of_gradient) = binary_cross_entropy_bound(x, target);
    each_output(call, [vec![mean], gradient], [vec![of_mean], of_gradient])
}

/// Computes the mean loss of logits `x` with probabilities `target`, and its gradient with respect to x. A target
/// outside 0 to 1 gives NaN.
pub fn binary_cross_entropy<T: Number>(x: &[T], target: &[T]) -> (T, Vec<T>) {
    let (mean, gradient) = binary_cross_entropy_results(x, target);
    (T::from_f64(mean.0), gradient.into_iter().map(|(exact, _)| T::from_f64(exact)).collect())
}

/// Bounds the error of each result: the exponential, the logarithm (2^-21 between 0.5 and 2), products and sums, and
/// the chain of additions of the mean.
pub fn binary_cross_entropy_bound<T: Number>(x: &[T], target: &[T]) -> (f64, Vec<f64>) {
    let (mean, gradient) = binary_cross_entropy_results(x, target);
    let of = |(exact, error): (f64, f64)| spread(T::from_f64(exact), exact, error);
    (of(mean), gradient.into_iter().map(of).collect())
}

/// A result and the bound of its error.
type Bounded = (f64, f64);

fn element(x: f64, target: f64) -> [Bounded; 2] {
    if x.is_nan() || !(0.0..=1.0).contains(&target) {
        return [(f64::NAN, 0.0); 2];
    }
    let (u, e) = (ulp(1.0), (-x.abs()).exp());
    let of_e = exp_ulps(x.abs().min(104.0)) * u * e + LEAST_NORMAL;
    let share = if x >= 0.0 { 1.0 - target } else { target };
    let far = if share == 0.0 { 0.0 } else { share * x.abs() };
    let rest = e.ln_1p();
    let of_log = if e > 0.06 { 2f64.powi(-21) } else { 0.0 };
    // A subnormal share may be read as 0.
    let lost = if share > 0.0 && share < LEAST_NORMAL { far } else { 0.0 };
    let of_loss = of_e + of_log + 8.0 * u * rest + 4.0 * u * far + lost;
    let p = activate(Activation::Sigmoid, x);
    let slope = p - target;
    [(far + rest, of_loss), (slope, of_e + 5.0 * u * p + u * slope.abs())]
}

fn binary_cross_entropy_results<T: Number>(x: &[T], target: &[T]) -> (Bounded, Vec<Bounded>) {
    let (n, u) = (x.len() as f64, ulp(1.0));
    let (mut total, mut errors, mut gradient) = (0.0, 0.0, Vec::new());
    for (x, target) in x.iter().zip(target) {
        let [(loss, of_loss), (slope, of_slope)] = element(x.to_f64(), target.to_f64());
        total += loss;
        errors += of_loss + chain(n as usize) * u * loss;
        gradient.push((slope / n, (of_slope + 2.0 * u * slope.abs()) / n));
    }
    let mean = total / n;
    ((mean, errors / n + 3.0 * u * mean), gradient)
}

#[cfg(test)]
#[path = "tests/losses.rs"]
mod tests;
