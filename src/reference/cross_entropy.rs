use super::prelude::*;
use super::softmax::rows;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let classes = output_shape(call, 2).last().copied().unwrap_or(0);
    let (logits, labels) = (input::<f32>(call, 0)?, input(call, 1)?);
    let (losses, mean, gradient) = cross_entropy(classes, logits, labels);
    let (of_losses, of_mean, of_gradient) = cross_entropy_bound(classes, logits, labels);
    each_output(call, [losses, vec![mean], gradient], [of_losses, vec![of_mean], of_gradient])
}

/// Computes the loss of each row of `classes` logits, the mean, and its gradient. A label that is not a class gives
/// NaN.
pub fn cross_entropy<T: Number>(classes: usize, logits: &[T], labels: &[u32]) -> (Vec<T>, T, Vec<T>) {
    let (losses, mean, gradient) = results(classes, logits, labels);
    let rounded = |values: Vec<(f64, f64)>| values.into_iter().map(|(exact, _)| T::from_f64(exact)).collect();
    (rounded(losses), T::from_f64(mean.0), rounded(gradient))
}

/// Bounds the error of each result: the sum of exponentials as in [`softmax_bound`](super::softmax_bound), its
/// logarithm (2^-21 between 0.5 and 2, else 3 ULP), differences, and the chain of additions of the mean.
pub fn cross_entropy_bound<T: Number>(classes: usize, logits: &[T], labels: &[u32]) -> (Vec<f64>, f64, Vec<f64>) {
    let (losses, mean, gradient) = results(classes, logits, labels);
    let of = |(exact, error): (f64, f64)| spread(T::from_f64(exact), exact, error);
    (losses.into_iter().map(of).collect(), of(mean), gradient.into_iter().map(of).collect())
}

type Pairs = Vec<(f64, f64)>;

fn results<T: Number>(classes: usize, logits: &[T], labels: &[u32]) -> (Pairs, (f64, f64), Pairs) {
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

#[cfg(test)]
#[path = "tests/cross_entropy.rs"]
mod tests;
