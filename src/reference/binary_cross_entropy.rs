use super::activation::activate;
use super::prelude::*;
use crate::dense::Activation;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (x, target) = (input::<f32>(call, 0)?, input(call, 1)?);
    let (mean, gradient) = binary_cross_entropy(x, target);
    let (of_mean, of_gradient) = binary_cross_entropy_bound(x, target);
    each_output(call, [vec![mean], gradient], [vec![of_mean], of_gradient])
}

/// Computes the mean loss of logits `x` with probabilities `target`, and its gradient with respect to x. A target
/// outside 0 to 1 gives NaN.
pub fn binary_cross_entropy<T: Number>(x: &[T], target: &[T]) -> (T, Vec<T>) {
    let (mean, gradient) = results(x, target);
    (T::from_f64(mean.0), gradient.into_iter().map(|(exact, _)| T::from_f64(exact)).collect())
}

/// Bounds the error of each result: the exponential, the logarithm (2^-21 between 0.5 and 2), products and sums, and
/// the chain of additions of the mean.
pub fn binary_cross_entropy_bound<T: Number>(x: &[T], target: &[T]) -> (f64, Vec<f64>) {
    let (mean, gradient) = results(x, target);
    let of = |(exact, error): (f64, f64)| spread(T::from_f64(exact), exact, error);
    (of(mean), gradient.into_iter().map(of).collect())
}

/// A result and the bound of its error.
type Bounded = (f64, f64);

/// Returns loss and slope of one element.
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

fn results<T: Number>(x: &[T], target: &[T]) -> (Bounded, Vec<Bounded>) {
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
#[path = "tests/binary_cross_entropy.rs"]
mod tests;
