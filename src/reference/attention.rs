use super::prelude::*;
use crate::attention::{Attention, KvAppend, KvType, ScoreStage, may_run_on_matrices};
use crate::element::{fp8_code, fp8_value};

judges! { attention => judge_attention, kv_append => judge_kv_append }

fn judge_attention(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_kv_append(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<KvAppend>(call)?;
    let paged = op.over.paging.is_some();
    let table = paged.then(|| input(call, 2)).transpose()?;
    let lengths_at = 2 + usize::from(paged);
    let lengths = input(call, lengths_at)?;
    let kv = op.over.kv.filter(|kv| kv.is_scaled());
    let scales = kv.map(|_| input::<f32>(call, lengths_at + 3)).transpose()?;
    let (mut wanted, mut factors) = (Vec::new(), scales.unwrap_or_default().to_vec());
    let (mut of_factors, rows) = (vec![0.0; factors.len()], factors.len() / 2);
    by_input!(call, 0, [f32, f16], T => {
        for i in 0..2 {
            let append = Append { op, new: input::<T>(call, i)?, lengths, table };
            let (at, shape) = (lengths_at + 1 + i, output_shape(call, i));
            wanted.push(match kv {
                None => by_input!(call, at, [f32, f16], K => append.numbers(&shape, input::<K>(call, at)?))?,
                Some(kv) => {
                    append.factors(kv, &mut factors[i * rows..][..rows], &mut of_factors[i * rows..][..rows]);
                    by_input!(call, at, [i8, u8], K => append.codes(kv, &shape, input::<K>(call, at)?))?
                }
            });
        }
        if kv.is_some() {
            wanted.push(Wanted::near(&output_shape(call, 2), factors, of_factors)?);
        }
        Ok(wanted)
    })
}

/// The new keys, or values, and their place in the cache.
struct Append<'a, T> {
    op: &'a KvAppend,
    new: &'a [T],
    lengths: &'a [u32],
    table: Option<&'a [u32]>,
}

impl<T: Number> Append<'_, T> {
    fn each(&self, visit: impl FnMut(usize, &[f32])) {
        each_row(self.op, self.new, self.lengths, self.table, visit);
    }

    /// Returns the expected cache of floats.
    fn numbers<K: Number>(&self, shape: &[usize], before: &[K]) -> Result<Wanted>
    where
        HostData: From<Vec<K>>,
    {
        let mut cache: Vec<f32> = before.iter().map(|x| x.to_f64() as f32).collect();
        kv_append(self.op, self.new, self.lengths, self.table, &mut cache);
        let bound = vec![0.0; cache.len()];
        Wanted::near(shape, cache.iter().map(|x| K::from_f64(f64::from(*x))).collect(), bound)
    }

    /// Computes the expected scales of the rows; a quotient is within 2.5 ULP.
    fn factors(&self, kv: KvType, factors: &mut [f32], bound: &mut [f64]) {
        self.each(|at, x| {
            let exact = factor(kv, x);
            factors[at] = exact as f32;
            bound[at] = spread(factors[at], exact, 2.5 * ulp(exact));
        });
    }

    /// Returns the expected cache of codes. A quotient near the middle of two codes may become either.
    fn codes<K: Number>(&self, kv: KvType, shape: &[usize], before: &[K]) -> Result<Wanted>
    where
        HostData: From<Vec<K>>,
    {
        let (mut codes, mut bound) = (before.to_vec(), vec![0.0; before.len()]);
        self.each(|at, x| {
            let (factor, size) = (factor(kv, x), x.len());
            for (i, x) in x.iter().enumerate() {
                let (want, off) = code(kv, f64::from(*x), factor);
                codes[at * size + i] = K::from_f64(want);
                bound[at * size + i] = off;
            }
        });
        Wanted::near(shape, codes, bound)
    }
}

/// Returns the exact scale of a row.
fn factor(kv: KvType, x: &[f32]) -> f64 {
    let largest = x.iter().fold(0f32, |max, x| max.max(x.abs()));
    f64::from(largest) / if kv == KvType::Fp8 { 448.0 } else { 127.0 }
}

/// Returns the code of an element as a number, and the bound of its error.
fn code(kv: KvType, x: f64, factor: f64) -> (f64, f64) {
    let code = |x: f64| match kv {
        KvType::Fp8 => f64::from(fp8_code(x as f32)),
        _ => x.round_ties_even().clamp(-127.0, 127.0),
    };
    if x == 0.0 || factor == 0.0 {
        return (if factor == 0.0 { 0.0 } else { code(x) }, 0.0);
    }
    let want = code(x / factor);
    let mut all = Vec::new();
    for factor in [factor - 2.5 * ulp(factor), factor + 2.5 * ulp(factor)] {
        let quotient = x / factor;
        all.extend([-2.5, 2.5].map(|ulps| quotient + ulps * ulp(quotient)));
    }
    // Subnormal numbers may be flushed to 0.
    if [x, factor, x / factor].iter().any(|x| x.abs() < LEAST_NORMAL) {
        all.push(0.0);
    }
    (want, all.into_iter().map(|x| (code(x) - want).abs()).fold(0.0, f64::max))
}

/// Appends new rows of keys, or of values, to a cache, as the numbers that the stored elements decode to.
pub fn kv_append<T: Number>(op: &KvAppend, new: &[T], lengths: &[u32], table: Option<&[u32]>, cache: &mut [f32]) {
    let kv = op.over.kv.unwrap_or(if size_of::<T>() == 2 { KvType::F16 } else { KvType::F32 });
    each_row(op, new, lengths, table, |at, x| {
        cache[at * x.len()..][..x.len()].copy_from_slice(&stored(kv, x));
    });
}

/// Calls `visit` with the place in the cache of every new row that has one, and the row.
fn each_row<T: Number>(
    op: &KvAppend, new: &[T], lengths: &[u32], table: Option<&[u32]>, mut visit: impl FnMut(usize, &[f32]),
) {
    let over = &op.over;
    // The rows of keys, or of values.
    let size = new.len() / (over.batch * over.kv_heads * over.queries).max(1);
    for (row, x) in new.chunks(size.max(1)).enumerate() {
        let (pair, token) = (row / over.queries, row % over.queries);
        let (b, head) = (pair / over.kv_heads, pair % over.kv_heads);
        let key = lengths[b] as usize + token;
        if key >= over.keys {
            continue;
        }
        let at = match (over.paging, table) {
            (Some(paging), Some(table)) => {
                let page = table[b * over.pages_each() + key / paging.tokens] as usize;
                if page >= paging.pages {
                    continue;
                }
                (page * over.kv_heads + head) * paging.tokens + key % paging.tokens
            }
            _ => pair * over.keys + key,
        };
        let x: Vec<f32> = x.iter().map(|x| x.to_f64() as f32).collect();
        visit(at, &x);
    }
}

/// Returns the numbers that a row decodes to after it was stored.
fn stored(kv: KvType, x: &[f32]) -> Vec<f32> {
    let largest = x.iter().fold(0f32, |max, x| max.max(x.abs()));
    let scaled = |max_code: f32, code: &dyn Fn(f32) -> f32| {
        let scale = largest / max_code;
        x.iter().map(|x| if scale == 0.0 { 0.0 } else { code(x / scale) * scale }).collect()
    };
    match kv {
        KvType::F32 => x.to_vec(),
        KvType::F16 => x.iter().map(|x| f16::from_f32(*x).to_f32()).collect(),
        KvType::Int8 => scaled(127.0, &f32::round_ties_even),
        KvType::Fp8 => scaled(448.0, &|x| fp8_value(fp8_code(x))),
    }
}

#[cfg(test)]
#[path = "tests/attention.rs"]
mod tests;
