use super::prelude::*;
use super::{fp8_code, fp8_value};
use crate::attention::{KvAppend, KvType};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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
#[path = "tests/kv_append.rs"]
mod tests;
