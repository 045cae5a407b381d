use super::prelude::*;
use super::softmax::rows;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let n = row_length(call);
    by_input!(call, 0, [f32, f16], T => {
        let x = input::<T>(call, 0)?;
        Ok(vec![Wanted::near(&output_shape(call, 0), log_softmax(n, x), log_softmax_bound(n, x))?])
    })
}

/// Computes the logarithm of the softmax of each row of `n` elements of `x`.
pub fn log_softmax<T: Number>(n: usize, x: &[T]) -> Vec<T> {
    rows(n, x).flat_map(|row| row.below.iter().map(|d| T::from_f64(d - row.sum.ln())).collect::<Vec<_>>()).collect()
}

/// Bounds the error of each element, as WGSL allows: the sum as in [`softmax_bound`](super::softmax_bound), its
/// logarithm (2^-21 between 0.5 and 2, else 3 ULP), and two differences.
pub fn log_softmax_bound<T: Number>(n: usize, x: &[T]) -> Vec<f64> {
    let of_row = |row: super::softmax::SoftmaxRow| {
        let log = row.sum.ln();
        let log_error = if row.sum <= 2.0 { 2f64.powi(-21) } else { 3.0 * ulp(log) };
        let sum_error = row.sum_error();
        let of = |&d: &f64| {
            let exact = d - log;
            if !exact.is_finite() {
                return spread(T::from_f64(exact), exact, 0.0);
            }
            spread(T::from_f64(exact), exact, sum_error + log_error + ulp(d) + ulp(exact))
        };
        row.below.iter().map(of).collect::<Vec<_>>()
    };
    rows(n, x).flat_map(of_row).collect()
}

#[cfg(test)]
#[path = "tests/log_softmax.rs"]
mod tests;
