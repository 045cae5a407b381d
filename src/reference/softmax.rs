use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let shape = output_shape(call, 0);
    let n = shape.last().copied().unwrap_or(0);
    by_input!(call, 0, [f32, f16], T => {
        let x = input::<T>(call, 0)?;
        Ok(vec![Wanted::near(&shape, softmax(n, x), softmax_bound(n, x))?])
    })
}

/// Computes the softmax of each row of `n` elements of `x`.
pub fn softmax<T: Number>(n: usize, x: &[T]) -> Vec<T> {
    rows(n, x).flat_map(|row| row.exact().into_iter().map(T::from_f64).collect::<Vec<_>>()).collect()
}

/// Bounds the error of each element, as WGSL allows. With u = 2^-23, `exp` of d errs by `3 + 2 |d|` ULP and d by its
/// rounding, a sum by its chain of additions, and the quotient by 3 ULP. Subnormal numbers may be flushed to 0.
pub fn softmax_bound<T: Number>(n: usize, x: &[T]) -> Vec<f64> {
    let bound = |row: SoftmaxRow| {
        let sum_error = row.sum_error();
        let of = |(d, exact): (&f64, f64)| {
            let error = (exp_ulps(*d) + 4.0) * ulp(1.0) + sum_error;
            spread(T::from_f64(exact), exact, error * exact)
        };
        row.below.iter().zip(row.exact()).map(of).collect::<Vec<_>>()
    };
    rows(n, x).flat_map(bound).collect()
}

/// A row, as differences from its maximum.
pub(super) struct SoftmaxRow {
    pub(super) below: Vec<f64>,
    pub(super) sum: f64,
}

pub(super) fn rows<T: Number>(n: usize, x: &[T]) -> impl Iterator<Item = SoftmaxRow> {
    x.chunks(n.max(1)).map(|row| {
        let row: Vec<f64> = row.iter().map(|x| x.to_f64()).collect();
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let below: Vec<f64> = row.iter().map(|x| x - largest).collect();
        let sum = below.iter().map(|d| d.exp()).sum();
        SoftmaxRow { below, sum }
    })
}

impl SoftmaxRow {
    fn exact(&self) -> Vec<f64> {
        self.below.iter().map(|d| d.exp() / self.sum).collect()
    }

    /// Bounds the relative error of the sum.
    pub(super) fn sum_error(&self) -> f64 {
        let each = |d: &f64| if d.exp() > 0.0 { d.exp() * exp_ulps(*d) } else { 0.0 };
        let of_terms: f64 = self.below.iter().map(each).sum::<f64>() / self.sum;
        // Joining parts scales by one more exponential.
        (2.0 * of_terms + chain(self.below.len())) * ulp(1.0)
    }
}

#[cfg(test)]
#[path = "tests/softmax.rs"]
mod tests;
