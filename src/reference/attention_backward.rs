use super::attention::sees;
use super::prelude::*;
use crate::attention::{AttentionBackward, may_differentiate_on_matrices};

judges! { attention_backward => judge_attention_backward }

fn judge_attention_backward(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<AttentionBackward>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (q, k, v, dy) = (input::<T>(call, 0)?, input(call, 1)?, input(call, 2)?, input(call, 3)?);
        let inputs = [q, k, v, dy];
        if op.saved {
            let (output, logsumexp) = (input(call, 4)?, input(call, 5)?);
            let bound = attention_backward_saved_bound(op, inputs, output, logsumexp);
            return each_output(call, attention_backward_saved(op, inputs, output, logsumexp), bound);
        }
        let bound = attention_backward_bound(op, q, k, v, dy);
        each_output(call, attention_backward(op, q, k, v, dy), bound)
    })
}

/// Computes the gradients with respect to q, k and v in f64.
pub fn attention_backward<T: Number>(op: &AttentionBackward, q: &[T], k: &[T], v: &[T], dy: &[T]) -> [Vec<T>; 3] {
    exact(differentiate(op, [q, k, v, dy], None))
}

/// Computes the gradients for [`AttentionBackward::saved`] in f64, from q, k, v and dy, and the `output` and
/// `logsumexp` of the forward pass: weights are exponentials of the difference of scores and logarithms, and their mean
/// of `dy v^T` is the product of dy and the output.
pub fn attention_backward_saved<T: Number>(
    op: &AttentionBackward, inputs: [&[T]; 4], output: &[T], logsumexp: &[f32],
) -> [Vec<T>; 3] {
    exact(differentiate(op, inputs, Some((output, logsumexp))))
}

/// As [`attention_backward_bound`], for [`attention_backward_saved`].
pub fn attention_backward_saved_bound<T: Number>(
    op: &AttentionBackward, inputs: [&[T]; 4], output: &[T], logsumexp: &[f32],
) -> [Vec<f64>; 3] {
    bounds::<T>(differentiate(op, inputs, Some((output, logsumexp))))
}

fn exact<T: Number>(gradients: [Vec<(f64, f64)>; 3]) -> [Vec<T>; 3] {
    gradients.map(|part| part.into_iter().map(|(exact, _)| T::from_f64(exact)).collect())
}

fn bounds<T: Number>(gradients: [Vec<(f64, f64)>; 3]) -> [Vec<f64>; 3] {
    let bound = |(exact, error): (f64, f64)| match exact.is_nan() {
        true => 0.0,
        false if error.is_nan() => f64::INFINITY,
        false => spread(T::from_f64(exact), exact, error),
    };
    gradients.map(|part| part.into_iter().map(bound).collect())
}

/// Bounds the error of each element computed in f32: rounding of scores, exponentials, their sum, the products with the
/// values, and the sums over keys and queries; for f16 and a variant that may run on cooperative matrices, also
/// rounding of weights and slopes to f16, to either neighbour, and hardware that truncates sums. Unbounded if an
/// operand of the heads that share the element's keys holds NaN or an infinity, and the gradient is not NaN.
pub fn attention_backward_bound<T: Number>(
    op: &AttentionBackward, q: &[T], k: &[T], v: &[T], dy: &[T],
) -> [Vec<f64>; 3] {
    bounds::<T>(differentiate(op, [q, k, v, dy], None))
}

/// The longest chain of f32 additions over `n` queries or keys: within a tile, and over tiles.
fn additions(n: usize) -> f64 {
    n.min(256 + n / 16) as f64
}

/// What a query and a key that it sees give the gradients.
struct PairTerms {
    key: usize,
    /// Its weight in the softmax, and the error of that, relative.
    weight: f64,
    relative: f64,
    /// The gradient of its score, and the error of that.
    slope: f64,
    error: f64,
}

/// Returns dq, dk and dv with error bounds.
fn differentiate<T: Number>(
    op: &AttentionBackward, [q, k, v, dy]: [&[T]; 4], saved: Option<(&[T], &[f32])>,
) -> [Vec<(f64, f64)>; 3] {
    let of = &op.forward;
    let (d, e, u, scale) = (of.head_size, op.value_size, ulp(1.0), f64::from(of.factor()));
    let numbers = |x: &[T]| x.iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
    let (q, k, v, dy) = (numbers(q), numbers(k), numbers(v), numbers(dy));
    let saved = saved
        .map(|(output, logsumexp)| (numbers(output), logsumexp.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>()));
    let none = |x: &[f64]| vec![(0.0, LEAST_NORMAL); x.len()];
    let (mut dq, mut dk, mut dv) = (none(&q), none(&k), none(&v));
    let chain = additions(of.keys.max(of.queries.saturating_mul(of.group())));
    let halves = T::DTYPE == DType::F16 && may_differentiate_on_matrices(op);
    let widened = |value: f64, error: f64| match halves {
        true => 4.0 * error + value.abs() / 1000.0 + 1.0 / f64::from(1 << 22),
        false => error,
    };
    for row in 0..of.batch * of.heads * of.queries {
        let (head, query) = (row / of.queries, row % of.queries);
        let first_key = head / of.group() * of.keys;
        let saved = saved.as_ref().map(|(output, logarithms)| (&output[row * e..][..e], logarithms[row]));
        let of_row = [&q[row * d..][..d], &dy[row * e..][..e]];
        for seen in row_terms(op, query, first_key, of_row, [&k, &v], saved) {
            let term = |to: &mut (f64, f64), value: f64, error: f64, by: f64| {
                let least = LEAST_NORMAL * (1.0 + by.abs());
                let error = widened(value, error + (chain + 4.0) * u * value.abs());
                *to = (to.0 + value * by, to.1 + error * by.abs() + least);
            };
            let [slope, error] = [seen.slope * scale, seen.error * scale.abs()];
            for i in 0..d {
                let [at, key_at] = [row * d + i, seen.key * d + i];
                term(&mut dq[at], slope, error, k[key_at]);
                term(&mut dk[key_at], slope, error, q[at]);
            }
            for i in 0..e {
                let [at, key_at] = [row * e + i, seen.key * e + i];
                term(&mut dv[key_at], seen.weight, seen.weight * seen.relative, dy[at]);
            }
        }
    }
    // A kernel may multiply NaN and infinities of one row by the weight 0 of another.
    let is_finite = |x: &[f64], pair: usize| {
        let each = x.len() / (of.batch * of.kv_heads);
        x[pair * each..][..each].iter().all(|x| x.is_finite())
    };
    for pair in 0..of.batch * of.kv_heads {
        let saved = saved.iter().flat_map(|(output, logarithms)| [output, logarithms]);
        if ![&q, &k, &v, &dy].into_iter().chain(saved).all(|x| is_finite(x, pair)) {
            for part in [&mut dq, &mut dk, &mut dv] {
                let each = part.len() / (of.batch * of.kv_heads);
                part[pair * each..][..each].iter_mut().for_each(|x| x.1 = f64::NAN);
            }
        }
    }
    [dq, dk, dv]
}

fn row_terms(
    op: &AttentionBackward, query: usize, first_key: usize, [q, dy]: [&[f64]; 2], [k, v]: [&[f64]; 2],
    saved: Option<(&[f64], f64)>,
) -> Vec<PairTerms> {
    let of = &op.forward;
    let (d, e, u, scale) = (of.head_size, op.value_size, ulp(1.0), f64::from(of.factor()));
    let keys: Vec<usize> = (0..of.keys).filter(|&key| sees(of, query, key, of.keys)).collect();
    let product = |a: &[f64], b: &[f64], key: usize| {
        let terms = a.iter().zip(&b[(first_key + key) * a.len()..][..a.len()]).map(|(a, b)| a * b);
        terms.fold((0.0, 0.0), |(sum, size): (f64, f64), x: f64| (sum + x, size + x.abs()))
    };
    // Scores with their errors, and products of the output's gradient and the values with theirs.
    let scores: Vec<(f64, f64)> = (keys.iter())
        .map(|&key| product(q, k, key))
        .map(|(sum, size)| (sum * scale, ((d as f64 + 8.0) * size + 2.0 * sum.abs()) * scale.abs() * u))
        .collect();
    let slopes: Vec<(f64, f64)> =
        (keys.iter()).map(|&key| product(dy, v, key)).map(|(sum, size)| (sum, (e as f64 + 2.0) * size * u)).collect();
    if let Some((output, logarithm)) = saved {
        if logarithm == f64::NEG_INFINITY {
            return Vec::new();
        }
        let terms = dy.iter().zip(output).map(|(a, b)| a * b);
        let (delta, size) = terms.fold((0.0, 0.0), |(sum, size): (f64, f64), x| (sum + x, size + x.abs()));
        return (0..keys.len())
            .map(|i| {
                let ((score, of_score), (slope, of_slope)) = (scores[i], slopes[i]);
                let away = score - logarithm;
                let weight = away.exp();
                let ulps = if weight == 0.0 { 0.0 } else { exp_ulps(away) + 8.0 + 4.0 * logarithm.abs() };
                let relative = of_score + ulps * u;
                let sums = u * ((e as f64 + 8.0) * size + 6.0 * (slope.abs() + delta.abs()));
                let error = relative * (slope - delta).abs() + of_slope + sums;
                PairTerms {
                    key: first_key + keys[i],
                    weight,
                    relative,
                    slope: weight * (slope - delta),
                    error: weight * error,
                }
            })
            .collect();
    }
    let largest = scores.iter().map(|s| s.0).fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY && !scores.iter().any(|s| s.0.is_nan()) {
        return Vec::new();
    }
    let weights: Vec<f64> = scores.iter().map(|s| (s.0 - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    let weights: Vec<f64> = weights.into_iter().map(|w| w / total).collect();
    let chain = additions(keys.len());
    // Errors of the exponentials, of the sum's logarithm, and of the mean of the slopes.
    let rounded = |s: &(f64, f64)| {
        let away = if s.0 == f64::NEG_INFINITY { 0.0 } else { s.0 - largest };
        s.1 + (exp_ulps(away) + 8.0 + largest.abs()) * u
    };
    let mean = |of: &dyn Fn(usize) -> f64| -> f64 {
        weights.iter().enumerate().filter(|(_, w)| **w > 0.0).map(|(i, w)| w * of(i)).sum()
    };
    let of_sum = mean(&|i| rounded(&scores[i])) + (2.0 * chain + 8.0 + total.ln().abs()) * u;
    let delta: f64 = weights.iter().zip(&slopes).map(|(w, slope)| w * slope.0).sum();
    let of_delta = mean(&|i| (rounded(&scores[i]) + of_sum) * (slopes[i].0 - delta).abs() + slopes[i].1)
        + 2.0 * (chain + 4.0) * u * mean(&|i| slopes[i].0.abs());
    (0..keys.len())
        .map(|i| {
            let (weight, (slope, of_slope)) = (weights[i], slopes[i]);
            let relative = rounded(&scores[i]) + of_sum;
            // dq may be the difference of two sums, of w slope k and delta w k.
            let sums = (chain + 6.0) * u * (slope.abs() + delta.abs());
            let error = relative * (slope - delta).abs() + of_slope + of_delta + sums;
            PairTerms {
                key: first_key + keys[i],
                weight,
                relative,
                slope: weight * (slope - delta),
                error: weight * error,
            }
        })
        .collect()
}

#[cfg(test)]
#[path = "tests/attention_backward.rs"]
mod tests;
