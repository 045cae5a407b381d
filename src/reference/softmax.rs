use super::layers::word;
use super::prelude::*;
use crate::nn::SampleLogits;

judges! {
    softmax => judge_softmax, softmax_backward => judge_softmax_backward, log_softmax => judge_log_softmax,
    log_softmax_backward => judge_log_softmax_backward, sample_logits => judge_sample_logits
}

fn judge_softmax(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_softmax_backward(call: &OpCall) -> Result<Vec<Wanted>> {
    let (n, y, dy) = (row_length(call), input::<f32>(call, 0)?, input(call, 1)?);
    let bound = softmax_backward_bound(n, y, dy);
    Ok(vec![Wanted::near(&output_shape(call, 0), softmax_backward(n, y, dy), bound)?])
}

/// Computes `y (dy - sum(y dy))` of each row of `n` elements.
pub fn softmax_backward<T: Number>(n: usize, y: &[T], dy: &[T]) -> Vec<T> {
    softmax_backward_elements(n, y, dy).into_iter().map(|(exact, _)| T::from_f64(exact)).collect()
}

/// Bounds the error of each element: the chain of additions of the sum, and three roundings.
pub fn softmax_backward_bound<T: Number>(n: usize, y: &[T], dy: &[T]) -> Vec<f64> {
    let of = |(exact, error)| spread(T::from_f64(exact), exact, error + f64::from(f32::MIN_POSITIVE));
    softmax_backward_elements(n, y, dy).into_iter().map(of).collect()
}

/// Returns the results with error bounds.
fn softmax_backward_elements<T: Number>(n: usize, y: &[T], dy: &[T]) -> Vec<(f64, f64)> {
    let rows = y.chunks(n.max(1)).zip(dy.chunks(n.max(1)));
    let of_row = |(y, dy): (&[T], &[T])| {
        let pairs: Vec<(f64, f64)> = y.iter().zip(dy).map(|(y, g)| (y.to_f64(), g.to_f64())).collect();
        let total: f64 = pairs.iter().map(|(y, g)| y * g).sum();
        let size: f64 = pairs.iter().map(|(y, g)| (y * g).abs()).sum();
        let error = |y: f64, g: f64| y.abs() * ulp(1.0) * ((chain(n) + 4.0) * size + 3.0 * g.abs());
        pairs.into_iter().map(|(y, g)| (y * (g - total), error(y, g))).collect::<Vec<_>>()
    };
    rows.flat_map(of_row).collect()
}

fn judge_log_softmax(call: &OpCall) -> Result<Vec<Wanted>> {
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

/// Bounds the error of each element, as WGSL allows: the sum as in [`softmax_bound`], its
/// logarithm (2^-21 between 0.5 and 2, else 3 ULP), and two differences.
pub fn log_softmax_bound<T: Number>(n: usize, x: &[T]) -> Vec<f64> {
    let of_row = |row: SoftmaxRow| {
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

fn judge_log_softmax_backward(call: &OpCall) -> Result<Vec<Wanted>> {
    let (n, y, dy) = (row_length(call), input::<f32>(call, 0)?, input(call, 1)?);
    let bound = log_softmax_backward_bound(n, y, dy);
    Ok(vec![Wanted::near(&output_shape(call, 0), log_softmax_backward(n, y, dy), bound)?])
}

/// Computes `dy - exp(y) sum(dy)` of each row of `n` elements.
pub fn log_softmax_backward<T: Number>(n: usize, y: &[T], dy: &[T]) -> Vec<T> {
    log_softmax_backward_elements(n, y, dy).into_iter().map(|(exact, _)| T::from_f64(exact)).collect()
}

/// Bounds the error of each element: the chain of additions of the sum, the exponential (`3 + 2 |y|` ULP), and two
/// roundings.
pub fn log_softmax_backward_bound<T: Number>(n: usize, y: &[T], dy: &[T]) -> Vec<f64> {
    let of = |(exact, error)| spread(T::from_f64(exact), exact, error);
    log_softmax_backward_elements(n, y, dy).into_iter().map(of).collect()
}

/// Returns the results with error bounds.
fn log_softmax_backward_elements<T: Number>(n: usize, y: &[T], dy: &[T]) -> Vec<(f64, f64)> {
    let rows = y.chunks(n.max(1)).zip(dy.chunks(n.max(1)));
    let of_row = |(y, dy): (&[T], &[T])| {
        let total: f64 = dy.iter().map(|g| g.to_f64()).sum();
        let size: f64 = dy.iter().map(|g| g.to_f64().abs()).sum();
        let of = |(y, g): (&T, &T)| {
            let (p, g) = (y.to_f64().exp(), g.to_f64());
            let exact = g - p * total;
            let of_exp = if p > 0.0 { exp_ulps(y.to_f64()) + 1.0 } else { 0.0 };
            (exact, ulp(1.0) * (p * (chain(n) * size + of_exp * total.abs()) + exact.abs() + g.abs()))
        };
        y.iter().zip(dy).map(of).collect::<Vec<_>>()
    };
    rows.flat_map(of_row).collect()
}

fn judge_sample_logits(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<SampleLogits>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let tokens = sample_logits(op, input::<T>(call, 0)?);
        let want: Vec<u32> = tokens.iter().map(|tokens| tokens.first().copied().unwrap_or(0)).collect();
        // Between two tokens devices may choose.
        let bound = tokens.iter().map(|tokens| if tokens.len() > 1 { f64::INFINITY } else { 0.0 }).collect();
        Ok(vec![Wanted::near(&output_shape(call, 0), want, bound)?])
    })
}

/// Returns for each row the tokens that a device may draw: one, or those beside a border that lies within the error of
/// probabilities computed in f32 and rounded to 2^-24 of the largest.
pub fn sample_logits<T: Number>(op: &SampleLogits, logits: &[T]) -> Vec<Vec<u32>> {
    let ([_, classes], ..) = op.rule();
    let rows = logits.chunks_exact(classes.max(1)).enumerate();
    rows.map(|(row, logits)| draw(op, row, &logits.iter().map(|x| x.to_f64()).collect::<Vec<_>>())).collect()
}

fn draw(op: &SampleLogits, row: usize, logits: &[f64]) -> Vec<u32> {
    let (_, sharpness, top_k, top_p, place) = op.rule();
    let mut order: Vec<usize> = (0..logits.len()).filter(|i| logits[*i] > f64::NEG_INFINITY).collect();
    order.sort_by(|i, j| logits[*j].total_cmp(&logits[*i]));
    let Some(&first) = order.first() else { return vec![0] };
    let largest = logits[first];
    // Keeps what is at least as large as the last of `count`.
    let cut = |order: &mut Vec<usize>, count: usize| {
        if let Some(&last) = order.get(count - 1) {
            order.retain(|i| logits[*i] >= logits[last]);
        }
    };
    if sharpness == 0.0 {
        cut(&mut order, 1);
        return vec![order.iter().copied().min().unwrap_or(0) as u32];
    }
    if top_k > 0 {
        cut(&mut order, top_k as usize);
    }
    let weight = |i: usize| {
        if logits[i] == largest { 1.0 } else { ((logits[i] - largest) * f64::from(sharpness)).exp() }
    };
    let sum = |order: &[usize]| order.iter().map(|i| weight(*i)).sum::<f64>();
    // 40 steps of f32 where the exponent is -16, less where it is nearer to 0, and a rounding each.
    let error = |order: &[usize]| 40.0 * 2f64.powi(-23) * sum(order) + order.len() as f64 * 2f64.powi(-24);
    if top_p > 0 {
        let (all, slack) = (sum(&order), 2.0 * error(&order));
        let wanted = f64::from(top_p) / 4294967296.0 * all;
        let mut reached = 0.0;
        let counts = |limit: f64| {
            let mut reached = 0.0;
            order.iter().position(|i| {
                reached += weight(*i);
                reached >= limit
            })
        };
        let sets: Vec<usize> =
            [wanted - slack, wanted, wanted + slack].map(|limit| counts(limit).unwrap_or(order.len() - 1) + 1).into();
        let kept = |count: usize| {
            let mut kept = order.clone();
            cut(&mut kept, count);
            kept
        };
        let [low, middle, high] = [0, 1, 2].map(|i| kept(sets[i]));
        reached += sum(&middle);
        let mut tokens = passed(&middle, weight, word(place, row), reached, error(&middle));
        for other in [low, high].into_iter().filter(|other| other.len() != middle.len()) {
            tokens.extend(passed(&other, weight, word(place, row), sum(&other), error(&other)));
        }
        tokens.dedup();
        return tokens;
    }
    passed(&order, weight, word(place, row), sum(&order), error(&order))
}

/// The tokens at which the sum of weights may pass the share of the word, the likeliest first.
fn passed(kept: &[usize], weight: impl Fn(usize) -> f64, word: u32, sum: f64, error: f64) -> Vec<u32> {
    let share = f64::from(word) / 4294967296.0 * sum;
    let mut in_order = kept.to_vec();
    in_order.sort_unstable();
    let (mut before, mut sure, mut near) = (0.0, Vec::new(), Vec::new());
    for i in in_order {
        let after = before + weight(i);
        if share >= before && share < after {
            sure.push(i as u32);
        } else if share > before - 2.0 * error && share < after + 2.0 * error {
            near.push(i as u32);
        }
        before = after;
    }
    sure.extend(near);
    sure
}

#[cfg(test)]
#[path = "tests/softmax.rs"]
mod tests;
