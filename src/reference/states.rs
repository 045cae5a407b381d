use super::prelude::*;
use crate::primitives::{Monoid, Operator};

/// The results of an operator for all prefixes of a row, from that of no elements on.
pub(super) struct StatePrefixes {
    /// Numbers of a result.
    pub(super) outputs: usize,
    pub(super) values: Vec<f64>,
    /// Error bounds of the op in f32. Infinite where non-finite elements make the result any non-finite number.
    pub(super) bounds: Vec<f64>,
}

/// Numbers of an element and of a result.
pub(super) fn numbers_of(op: &Operator, dtype: DType) -> (usize, usize) {
    Monoid::new(op, dtype).map_or((1, 1), |monoid| (monoid.inputs(), monoid.outputs()))
}

/// Combines the elements of a row from first to last. `None` for operators on one element and the user's own.
pub(super) fn state_prefixes<T: Number>(op: &Operator, row: &[T]) -> Option<StatePrefixes> {
    let x = || row.iter().map(|x| x.to_f64());
    let mut of = StatePrefixes { outputs: numbers_of(op, T::DTYPE).1, values: Vec::new(), bounds: Vec::new() };
    match op {
        Operator::MinMax => of.min_max(T::DTYPE, x()),
        Operator::Sum64 => of.sum64(T::DTYPE, x()),
        Operator::MeanVariance(op) => of.mean_variance(op.lost(), x()),
        Operator::LogSumExp => of.log_sum_exp(x()),
        Operator::Affine(op) => of.affine(op.is_recurrence(), row),
        _ => return None,
    }
    Some(of)
}

/// The results and bounds of a scan of rows of `n` elements by an operator over a state; `None` as for
/// [`state_prefixes`].
pub(super) fn scan_states<T: Number>(
    op: &Operator, rows: usize, n: usize, (exclusive, reverse): (bool, bool), input: &[T],
) -> Option<(Vec<f64>, Vec<f64>)> {
    let inputs = numbers_of(op, T::DTYPE).0;
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    state_prefixes::<T>(op, &[])?;
    for row in (0..rows).map(|r| &input[r * n * inputs..(r + 1) * n * inputs]) {
        let mut row = row.to_vec();
        if reverse {
            row = row.rchunks(inputs).flatten().copied().collect();
        }
        let of = state_prefixes(op, &row)?;
        let outputs = of.outputs;
        for i in 0..n {
            let at = (if reverse { n - 1 - i } else { i } + usize::from(!exclusive)) * outputs;
            values.extend_from_slice(&of.values[at..at + outputs]);
            bounds.extend_from_slice(&of.bounds[at..at + outputs]);
        }
    }
    Some((values, bounds))
}

/// `j u / (1 - j u)` with u = 2^-24: the error of `j` roundings.
fn gamma(j: f64) -> f64 {
    let u = 2f64.powi(-24);
    if j * u < 1.0 { j * u / (1.0 - j * u) } else { f64::INFINITY }
}

/// Maximum joins that an element takes part in: `n`, or those of the trees.
fn depth(n: usize) -> f64 {
    let n = n as f64;
    n.min(64.0 + 3.0 * n.max(1.0).log2() + n / 256.0)
}

impl StatePrefixes {
    fn push(&mut self, value: f64, bound: f64) {
        self.values.push(value);
        self.bounds.push(bound);
    }

    fn min_max(&mut self, dtype: DType, x: impl Iterator<Item = f64>) {
        let (mut low, mut high) = match dtype {
            DType::I32 | DType::I8 => (f64::from(i32::MAX), f64::from(i32::MIN)),
            DType::U32 | DType::U8 => (f64::from(u32::MAX), 0.0),
            _ => (f64::INFINITY, f64::NEG_INFINITY),
        };
        self.push(low, 0.0);
        self.push(high, 0.0);
        for x in x {
            let is_nan = x.is_nan() || low.is_nan();
            (low, high) = if is_nan { (f64::NAN, f64::NAN) } else { (low.min(x), high.max(x)) };
            self.push(low, 0.0);
            self.push(high, 0.0);
        }
    }

    fn sum64(&mut self, dtype: DType, x: impl Iterator<Item = f64>) {
        let word = |word: u32| if dtype == DType::I32 { f64::from(word as i32) } else { f64::from(word) };
        let mut sum = 0i64;
        for x in [0.0].into_iter().chain(x) {
            sum = sum.wrapping_add(x as i64);
            self.push(word(sum as u32), 0.0);
            self.push(word((sum >> 32) as u32), 0.0);
        }
    }

    /// An element's mean errs by what a sum of means would, and a square by twice the error of its difference.
    fn mean_variance(&mut self, lost: u64, x: impl Iterator<Item = f64>) {
        let (mut count, mut mean, mut squares, mut largest) = (0u64, 0.0, 0.0, 0.0f64);
        self.push(f64::NAN, 0.0);
        self.push(f64::NAN, 0.0);
        for x in x {
            count += 1;
            let difference = x - mean;
            mean += difference / count as f64;
            squares += difference * (x - mean);
            largest = if x.is_finite() { largest.max(x.abs()) } else { f64::INFINITY };
            let variance = if count > lost { squares / (count - lost) as f64 } else { f64::NAN };
            let error = gamma(8.0 * depth(count as usize));
            let (of_mean, deviation) = (error * largest, variance.max(0.0).sqrt());
            let of_variance = 4.0 * (error * variance + 2.0 * deviation * of_mean + of_mean * of_mean);
            // Squares overflow sooner than numbers.
            let is_finite = largest < 1e18;
            let least = f64::from(f32::MIN_POSITIVE);
            self.push(mean, if is_finite { of_mean + least } else { f64::INFINITY });
            self.push(variance, if is_finite { of_variance + least } else { f64::INFINITY });
        }
    }

    /// A difference from the largest element is rounded at each join, and so is the factor of the sum.
    fn log_sum_exp(&mut self, x: impl Iterator<Item = f64>) {
        let (mut largest, mut sum, mut special, mut size) = (0.0f64, 0.0, 0.0, 0.0f64);
        self.push(f64::NEG_INFINITY, 0.0);
        for (i, x) in x.enumerate() {
            if x.is_nan() || x == f64::INFINITY {
                special += x;
            } else if x > f64::NEG_INFINITY {
                if sum == 0.0 {
                    (largest, sum) = (x, 1.0);
                } else if x > largest {
                    (largest, sum) = (x, sum * (largest - x).exp() + 1.0);
                } else {
                    sum += (x - largest).exp();
                }
                size = size.max(x.abs());
            }
            let value = if special != 0.0 { special } else { largest + sum.ln() };
            self.push(
                value,
                gamma(16.0 * depth(i + 1) * (1.0 + sum.ln().abs()) + 4.0 * size.min(1e6)) + gamma(4.0) * size,
            );
        }
    }

    /// The same recurrence in absolute values bounds every term; each is rounded twice a map.
    fn affine<T: Number>(&mut self, is_recurrence: bool, row: &[T]) {
        let (mut map, mut sizes) = ((1.0, 0.0), (1.0, 0.0));
        let mut push = |n: usize, map: (f64, f64), sizes: (f64, f64)| {
            let error = gamma(2.0 * n as f64 + 2.0);
            let bound = |size: f64| if size < 1e38 { error * size + n as f64 * 1e-37 } else { f64::INFINITY };
            if !is_recurrence {
                self.push(map.0, bound(sizes.0));
            }
            self.push(map.1, bound(sizes.1));
        };
        push(0, map, sizes);
        for (i, pair) in row.chunks_exact(2).enumerate() {
            let (scale, shift) = (pair[0].to_f64(), pair[1].to_f64());
            map = (scale * map.0, scale * map.1 + shift);
            sizes = (scale.abs() * sizes.0, scale.abs() * sizes.1 + shift.abs());
            push(i + 1, map, sizes);
        }
    }
}

#[cfg(test)]
#[path = "tests/states.rs"]
mod tests;
