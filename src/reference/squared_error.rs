use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (x, target) = (input::<f32>(call, 0)?, input(call, 1)?);
    let (mean, gradient) = squared_error(x, target);
    let (of_mean, of_gradient) = squared_error_bound(x, target);
    each_output(call, [vec![mean], gradient], [vec![of_mean], of_gradient])
}

/// Computes the mean of `(x - target)^2`, and its gradient with respect to x.
pub fn squared_error<T: Number>(x: &[T], target: &[T]) -> (T, Vec<T>) {
    let (mean, gradient) = results(x, target);
    (T::from_f64(mean), gradient.into_iter().map(T::from_f64).collect())
}

/// Bounds the error of each result: a difference, a product, and the chain of additions.
pub fn squared_error_bound<T: Number>(x: &[T], target: &[T]) -> (f64, Vec<f64>) {
    let (mean, gradient) = results(x, target);
    let chain = x.len().min(300) as f64 + 8.0;
    let of = |exact: f64, ulps: f64| spread(T::from_f64(exact), exact, ulps * ulp(1.0) * exact.abs());
    (of(mean, chain), gradient.into_iter().map(|g| of(g, 3.0)).collect())
}

fn results<T: Number>(x: &[T], target: &[T]) -> (f64, Vec<f64>) {
    let n = x.len() as f64;
    let differences: Vec<f64> = x.iter().zip(target).map(|(x, t)| x.to_f64() - t.to_f64()).collect();
    (differences.iter().map(|d| d * d).sum::<f64>() / n, differences.iter().map(|d| 2.0 * d / n).collect())
}

#[cfg(test)]
#[path = "tests/squared_error.rs"]
mod tests;
