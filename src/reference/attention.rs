use super::prelude::*;
use crate::attention::{Attention, KvType, ScoreStage, may_run_on_matrices};
use crate::element::fp8_value;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Attention>(call)?;
    let scaled = op.kv.is_some_and(KvType::is_scaled);
    // Optional inputs follow q, k and v.
    let mut next = 3..;
    let mut place = |given: bool| given.then(|| next.next()).flatten();
    let [scales, table] = [scaled, op.paging.is_some()].map(&mut place);
    let [lengths, mask] = [op.lengths, op.mask.is_some()].map(&mut place);
    let scales: Option<&[f32]> = scales.map(|at| input(call, at)).transpose()?;
    let inputs = AttentionInputs {
        table: table.map(|at| input(call, at)).transpose()?,
        lengths: lengths.map(|at| input(call, at)).transpose()?,
        mask: mask.map(|at| input(call, at)).transpose()?,
    };
    let (k, v) = (decoded(call, op, 1, scales)?, decoded(call, op, 2, scales)?);
    by_input!(call, 0, [f32, f16], T => {
        let q = input::<T>(call, 0)?;
        let mut bound = attention_bound(op, q, &k, &v, inputs);
        if T::DTYPE == DType::F16 && may_run_on_matrices(op) {
            bound = rounded_bound(op, q, (&k, &v), inputs, &bound);
        }
        let mut wanted =
            vec![Wanted::near(&output_shape(call, 0), attention(op, q, &k, &v, inputs), bound)?];
        if op.scores.is_some() {
            let bound = attention_scores_bound(op, q, &k, inputs);
            wanted.push(Wanted::near(&output_shape(call, 1), attention_scores(op, q, &k, inputs), bound)?);
        }
        if op.logsumexp {
            let shape = output_shape(call, wanted.len());
            let bound = attention_logsumexp_bound(op, q, &k, inputs);
            wanted.push(Wanted::near(&shape, attention_logsumexp(op, q, &k, inputs), bound)?);
        }
        Ok(wanted)
    })
}

/// Decodes the stored keys (input 1) or values (input 2); `scales` holds the scales of both.
fn decoded(call: &OpCall, op: &Attention, at: usize, scales: Option<&[f32]>) -> Result<Vec<f32>> {
    let layout = call.inputs().nth(at).map(HostArray::data);
    let numbers: Vec<f32> = match layout {
        Some(HostData::U8(codes)) => codes.iter().map(|code| fp8_value(*code)).collect(),
        Some(layout) => layout.to_f32().into_owned(),
        None => return Err(err!(InvalidArgument, "reference of attention: keys or values are missing")),
    };
    let Some(scales) = scales else { return Ok(numbers) };
    let scales = scales[(at - 1) * (scales.len() / 2)..].iter();
    let size = if at == 1 { op.head_size } else { op.value_size };
    let rows = numbers.chunks(size.max(1)).zip(scales);
    Ok(rows.flat_map(|(row, scale)| row.iter().map(move |x| x * scale)).collect())
}

/// Widens `bound` for weights rounded to either f16 neighbour, subnormal or not, and for hardware that truncates sums.
fn rounded_bound<T: Number>(
    op: &Attention, q: &[T], (k, v): (&[f32], &[f32]), inputs: AttentionInputs<'_>, bound: &[f64],
) -> Vec<f64> {
    let sizes: Vec<f32> = v.iter().map(|x| x.abs()).collect();
    let largest = sizes.iter().filter(|x| x.is_finite()).fold(0.0, |max: f32, x| max.max(*x));
    let small = 3.0 * op.keys as f64 * f64::from(largest) / (1 << 24) as f64;
    let sizes = attention(op, q, k, &sizes, inputs);
    bound.iter().zip(sizes).map(|(bound, size)| 4.0 * bound + size.to_f64() / 1000.0 + small).collect()
}

/// The optional inputs of [`attention`]. Set those whose option the [`Attention`] has.
#[derive(Debug, Clone, Copy, Default)]
pub struct AttentionInputs<'a> {
    /// The pages of each sequence.
    pub table: Option<&'a [u32]>,
    /// The number of keys of each sequence.
    pub lengths: Option<&'a [u32]>,
    /// The mask, which is added to the scores.
    pub mask: Option<&'a [f32]>,
}

/// Computes attention of each head in f64. Pass quantised keys and values decoded.
pub fn attention<T: Number, K: Number>(
    op: &Attention, q: &[T], k: &[K], v: &[K], inputs: AttentionInputs<'_>,
) -> Vec<T> {
    rows(op, q, k, v, inputs, false, |row| row.exact().into_iter().map(T::from_f64).collect())
}

/// Bounds the error of each element computed in f32: rounding of scores, exponentials, the sum of weights, and the
/// sum of weighted values.
pub fn attention_bound<T: Number, K: Number>(
    op: &Attention, q: &[T], k: &[K], v: &[K], inputs: AttentionInputs<'_>,
) -> Vec<f64> {
    rows(op, q, k, v, inputs, false, |row| {
        let exact = row.exact();
        let of = |(d, exact): (usize, f64)| spread(T::from_f64(exact), exact, row.error(d, exact));
        exact.into_iter().enumerate().map(of).collect()
    })
}

/// Computes the scores that [`Attention::scores`] returns, in f64.
pub fn attention_scores<T: Number, K: Number>(
    op: &Attention, q: &[T], k: &[K], inputs: AttentionInputs<'_>,
) -> Vec<f32> {
    score_rows(op, q, k, inputs, |(x, _)| x as f32)
}

/// Bounds the error of each of [`attention_scores`] computed in f32.
pub fn attention_scores_bound<T: Number, K: Number>(
    op: &Attention, q: &[T], k: &[K], inputs: AttentionInputs<'_>,
) -> Vec<f64> {
    score_rows(op, q, k, inputs, |(x, error)| spread(x as f32, x, error))
}

/// Computes the logarithms of sums of exponentials that [`Attention::logsumexp`] returns, in f64.
pub fn attention_logsumexp<T: Number, K: Number>(
    op: &Attention, q: &[T], k: &[K], inputs: AttentionInputs<'_>,
) -> Vec<f32> {
    rows(&op.clone().value_size(0), q, k, &[], inputs, false, |row| vec![row.logsumexp().0 as f32])
}

/// Bounds the error of each of [`attention_logsumexp`] computed in f32.
pub fn attention_logsumexp_bound<T: Number, K: Number>(
    op: &Attention, q: &[T], k: &[K], inputs: AttentionInputs<'_>,
) -> Vec<f64> {
    rows(&op.clone().value_size(0), q, k, &[], inputs, false, |row| {
        let (exact, error) = row.logsumexp();
        vec![spread(exact as f32, exact, error)]
    })
}

/// Calls `of` with each score and the bound of its error.
fn score_rows<T: Number, K: Number, R>(
    op: &Attention, q: &[T], k: &[K], inputs: AttentionInputs<'_>, of: impl Fn((f64, f64)) -> R,
) -> Vec<R> {
    let before_mask = matches!(op.scores, Some(ScoreStage::Products | ScoreStage::Capped));
    let op = op.clone().value_size(0);
    rows(&op, q, k, &[], inputs, before_mask, |row| row.staged(&op).into_iter().map(&of).collect())
}

/// Calls `of` with each row of `q` and what it sees, or with `hidden` all keys, and concatenates the results.
fn rows<T: Number, K: Number, R>(
    op: &Attention, q: &[T], k: &[K], v: &[K], inputs: AttentionInputs<'_>, hidden: bool,
    of: impl Fn(&AttentionRow) -> Vec<R>,
) -> Vec<R> {
    let (heads, queries, keys, d) = (op.heads, op.queries, op.keys, op.head_size);
    let vector = |x: &[K], row: usize, d: usize| x[row * d..][..d].iter().map(|x| x.to_f64()).collect::<Vec<_>>();
    let mut results = Vec::new();
    for row in 0..op.batch * heads * queries {
        let (query, head, b) = (row % queries, row / queries % heads, row / queries / heads);
        let len = inputs.lengths.map_or(keys, |lengths| (lengths[b] as usize).min(keys));
        let group = head / op.group();
        let mask_at = op.mask.map_or(0, |[batch, of_heads]| {
            let (b, head) = (b.min(batch - 1), head.min(of_heads - 1));
            ((b * of_heads + head) * queries + query) * keys
        });
        let mut visible = AttentionRow { d: op.value_size, ..Default::default() };
        for key in (0..len).filter(|&key| hidden || sees(op, query, key, len)) {
            let at = match (op.paging, inputs.table) {
                (Some(paging), Some(table)) => {
                    let page = table[b * op.pages_each() + key / paging.tokens] as usize;
                    if page >= paging.pages {
                        continue;
                    }
                    (page * op.kv_heads + group) * paging.tokens + key % paging.tokens
                }
                _ => (b * op.kv_heads + group) * keys + key,
            };
            let (vector_k, scale) = (vector(k, at, d), f64::from(op.factor()));
            let terms = q[row * d..][..d].iter().zip(&vector_k).map(|(q, k)| q.to_f64() * k * scale);
            let (product, size) = terms.fold((0.0, 0.0), |(sum, size), x: f64| (sum + x, size + x.abs()));
            let capped = op.softcap.map_or(product, |cap| f64::from(cap) * (product / f64::from(cap)).tanh());
            let mask = inputs.mask.map_or(0.0, |mask| f64::from(mask[mask_at + key]));
            let score = capped + mask;
            // Rounding of the sum of products, the scale, scaled inputs, the cap, and the base of the exponential.
            let capping = if op.softcap.is_some() { 16.0 * capped.abs() } else { 0.0 };
            let finite = |score: f64, error: f64| if score.is_finite() { error * ulp(1.0) } else { 0.0 };
            let summing = (d as f64 + 8.0) * size + capping;
            visible.before.push(match op.scores {
                Some(ScoreStage::Products) => (product, finite(product, summing)),
                _ => (capped, finite(capped, summing)),
            });
            visible.keys.push(key);
            visible.scores.push(score);
            // A cap bounds the score of an infinite product.
            let bounded = if size.is_finite() { summing } else { capping };
            visible.errors.push(finite(score, bounded + 2.0 * score.abs()));
            visible.values.push(vector(v, at, op.value_size));
        }
        results.extend(of(&visible));
    }
    results
}

/// Tells whether query i sees key j of `len`.
pub(super) fn sees(op: &Attention, i: usize, j: usize, len: usize) -> bool {
    let place = i as i64 + len as i64 - op.queries as i64;
    let away = place - j as i64;
    (!op.causal || away >= 0) && op.window.is_none_or(|w| away.unsigned_abs() < w as u64)
}

/// The scores and values that a row of `q` sees.
#[derive(Default)]
struct AttentionRow {
    keys: Vec<usize>,
    /// Scores before the mask, with bounds of their errors.
    before: Vec<(f64, f64)>,
    scores: Vec<f64>,
    /// Bounds of the errors of the scores.
    errors: Vec<f64>,
    values: Vec<Vec<f64>>,
    d: usize,
}

impl AttentionRow {
    fn largest(&self) -> f64 {
        self.scores.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the softmax of the scores: NaN if it is undefined, zeros if all scores are -infinity.
    fn weights(&self) -> Vec<f64> {
        let largest = self.largest();
        if largest == f64::NEG_INFINITY && !self.scores.iter().any(|s| s.is_nan()) {
            return vec![0.0; self.scores.len()];
        }
        let weights: Vec<f64> = self.scores.iter().map(|s| (s - largest).exp()).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|w| w / sum).collect()
    }

    /// Returns the scores of the step that `op` asks for, of all keys, with bounds of their errors.
    fn staged(&self, op: &Attention) -> Vec<(f64, f64)> {
        let (weights, relative) = (self.weights(), self.relative());
        let hidden = match op.scores {
            Some(ScoreStage::Weights) if weights.iter().any(|w| w.is_nan()) => f64::NAN,
            Some(ScoreStage::Weights) => 0.0,
            _ => f64::NEG_INFINITY,
        };
        let mut all = vec![(hidden, 0.0); op.keys];
        for (i, &key) in self.keys.iter().enumerate() {
            all[key] = match op.scores {
                Some(ScoreStage::Masked) => (self.scores[i], self.errors[i]),
                Some(ScoreStage::Weights) => (weights[i], weights[i] * relative[i]),
                _ => self.before[i],
            };
        }
        all
    }

    /// Returns the logarithm of the sum of exponentials, with a bound of its error.
    fn logsumexp(&self) -> (f64, f64) {
        let (largest, weights) = (self.largest(), self.weights());
        if weights.iter().all(|w| *w == 0.0) {
            return (f64::NEG_INFINITY, 0.0);
        }
        let exact = largest + self.scores.iter().map(|s| (s - largest).exp()).sum::<f64>().ln();
        let of_sum: f64 = weights.iter().zip(self.relative()).map(|(w, relative)| w * relative).sum();
        (exact, of_sum + 8.0 * ulp(1.0) * (1.0 + largest.abs() + exact.abs()))
    }

    fn exact(&self) -> Vec<f64> {
        let weights = self.weights();
        let of = |d| weights.iter().zip(&self.values).map(|(w, v)| w * v[d]).sum();
        (0..self.d).map(of).collect()
    }

    /// Bounds the relative errors of the weights.
    fn relative(&self) -> Vec<f64> {
        let (largest, u) = (self.largest(), ulp(1.0));
        let of_largest = self.scores.iter().zip(&self.errors).filter(|(s, _)| **s == largest);
        let of_largest = of_largest.map(|(_, e)| *e).fold(0.0, f64::max);
        let sums = 2.0 * chain(self.scores.len()) * u;
        let each = |(s, e): (&f64, &f64)| e + of_largest + (exp_ulps(s - largest) + 6.0) * u + sums;
        self.scores.iter().zip(&self.errors).map(each).collect()
    }

    fn error(&self, d: usize, exact: f64) -> f64 {
        let each = |((w, relative), v): ((f64, f64), &Vec<f64>)| {
            if w == 0.0 { 0.0 } else { w * relative * (v[d].abs() + exact.abs()) }
        };
        self.weights().into_iter().zip(self.relative()).zip(&self.values).map(each).sum::<f64>()
    }
}

#[cfg(test)]
#[path = "tests/attention.rs"]
mod tests;
