use super::prelude::*;
use super::scan::{numbers, segments};
use super::states::{StatePrefixes, numbers_of, state_prefixes};
use super::{scan, scan_bound};
use crate::primitives::Operator;
use std::ops::Range;

judges! {
    reduce => judge_reduce, reduce_by_key => judge_reduce_by_key, reduce_offsets => judge_reduce_offsets,
    segmented_reduce => judge_segmented_reduce
}

fn judge_reduce(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, shape) = (operator(call)?, output_shape(call, 0));
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let x = input::<T>(call, 0)?;
        let (inputs, outputs) = numbers_of(&op, T::DTYPE);
        let rows = shape.iter().product::<usize>() / outputs;
        let all = x.len().checked_div(rows * inputs).unwrap_or(0);
        let n = there(call, all)?;
        if n == 0 && all > 0 && !op.has_identity() {
            let any = [0.0, f64::INFINITY].map(|x| vec![x; rows * outputs]);
            return Ok(vec![Wanted::rounded(op.output(T::DTYPE)?, &shape, &any[0], &any[1])?]);
        }
        let x = &x[..rows * n * inputs];
        let want = reduce(&op, rows, n, x).ok_or_else(|| no_twin(&op))?;
        let bound = reduce_bound(&op, rows, n, x);
        Ok(vec![Wanted::rounded(op.output(T::DTYPE)?, &shape, &want, &bound)?])
    })
}

/// Reduces each of `rows` rows of `n` elements: floats in `f64` and not rounded, integers exactly and
/// wrapped to 32 bits, positions as numbers. `None` for a user's operator: see [`reduce_with`]. Operators over a state
/// take and give as many numbers for an element as the op.
///
/// A minimum or maximum of 0 elements is NaN here; the op rejects it.
pub fn reduce<T: Number>(op: &Operator, rows: usize, n: usize, input: &[T]) -> Option<Vec<f64>> {
    if let Some(states) = last_states(op, rows, n, input) {
        return Some(states.into_iter().flat_map(|(value, _)| value).collect());
    }
    let row = |r: usize| input[r * n..(r + 1) * n].iter().map(|x| x.to_f64());
    let wrapped = |row: &mut dyn Iterator<Item = f64>, first: i64, f: fn(i64, i64) -> i64| {
        let total = row.fold(first, |a, x| f(a, x as i64) & 0xffff_ffff);
        if matches!(T::DTYPE, DType::I32 | DType::I8) { f64::from(total as u32 as i32) } else { total as f64 }
    };
    let one = |r: usize| match op {
        Operator::Sum if T::DTYPE.is_float() => Some(row(r).sum()),
        Operator::Prod if T::DTYPE.is_float() => Some(row(r).product()),
        Operator::Sum => Some(wrapped(&mut row(r), 0, i64::wrapping_add)),
        Operator::Prod => Some(wrapped(&mut row(r), 1, i64::wrapping_mul)),
        Operator::Min => Some(extreme(row(r), |x, best| x < best).1),
        Operator::Max => Some(extreme(row(r), |x, best| x > best).1),
        Operator::ArgMin => Some(extreme(row(r), |x, best| x < best).0 as f64),
        Operator::ArgMax => Some(extreme(row(r), |x, best| x > best).0 as f64),
        _ => None,
    };
    (0..rows).map(one).collect()
}

/// The result of each row and its bound, for an operator over a state.
fn last_states<T: Number>(op: &Operator, rows: usize, n: usize, input: &[T]) -> Option<Vec<(Vec<f64>, Vec<f64>)>> {
    let n = n * numbers_of(op, T::DTYPE).0;
    let last = |StatePrefixes { outputs, mut values, mut bounds }: StatePrefixes| {
        let at = values.len() - outputs;
        (values.split_off(at), bounds.split_off(at))
    };
    state_prefixes::<T>(op, &[])?;
    (0..rows).map(|r| state_prefixes(op, &input[r * n..(r + 1) * n]).map(last)).collect()
}

/// Position and value of the first NaN, or else of the first element that no other is better than.
fn extreme(row: impl Iterator<Item = f64>, better: fn(f64, f64) -> bool) -> (usize, f64) {
    let mut found = (0, f64::NAN);
    for (i, x) in row.enumerate() {
        if x.is_nan() {
            return (i, x);
        }
        if i == 0 || better(x, found.1) {
            found = (i, x);
        }
    }
    found
}

/// Combines each row from left to right by a custom operator.
pub fn reduce_with<T: Copy>(rows: usize, n: usize, input: &[T], identity: T, combine: impl Fn(T, T) -> T) -> Vec<T> {
    (0..rows).map(|r| input[r * n..(r + 1) * n].iter().fold(identity, |a, &x| combine(a, x))).collect()
}

/// Returns the error bound of each result against [`reduce`] for the op in f32, for elements of type `T`.
///
/// A sum of n terms in any order errs by at most `gamma(n - 1) sum |x|` with
/// `gamma(j) = j u / (1 - j u)`, u = 2^-24 (Higham, *Accuracy and Stability of Numerical Algorithms*,
/// section 4.2); the tree is no deeper than `log2 n` plus what a thread adds one after another, which is
/// at most a 2^13th of the input and 64. A product errs by `gamma(n)` of itself in any order. Everything else is exact.
/// Rounding to f16 comes on top.
pub fn reduce_bound<T: Number>(op: &Operator, rows: usize, n: usize, input: &[T]) -> Vec<f64> {
    if let Some(states) = last_states(op, rows, n, input) {
        return states.into_iter().flat_map(|(_, bound)| bound).collect();
    }
    let u = 2f64.powi(-24);
    let gamma = |j: f64| if j * u < 1.0 { j * u / (1.0 - j * u) } else { f64::INFINITY };
    let row = |r: usize| input[r * n..(r + 1) * n].iter().map(|x| x.to_f64());
    let half_step = if T::DTYPE == DType::F16 { 2f64.powi(-11) } else { 0.0 };
    let depth = (n as f64).min(64.0 + (n as f64).max(1.0).log2() + n as f64 / 8192.0);
    (0..rows)
        .map(|r| match op {
            Operator::Sum if T::DTYPE.is_float() => {
                let size: f64 = row(r).map(f64::abs).sum();
                gamma(depth) * size + half_step * row(r).sum::<f64>().abs() + f64::from(f32::MIN_POSITIVE)
            }
            Operator::Prod if T::DTYPE.is_float() => {
                let product: f64 = row(r).product();
                (gamma(n as f64) + half_step) * product.abs() + n as f64 * f64::from(f32::MIN_POSITIVE)
            }
            _ => 0.0,
        })
        .collect()
}

fn judge_reduce_by_key(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = operator(call)?;
    by_input!(call, 0, [f32, i32, u32], K => by_input!(call, 1, [f32, i32, u32], T => {
        let there = there(call, input::<K>(call, 0)?.len())?;
        let (keys, values) = (front_of::<K>(call, 0, there)?, front_of::<T>(call, 1, there)?);
        let (firsts, want) = reduce_by_key(&op, keys, values).ok_or_else(|| no_twin(&op))?;
        let bound = reduce_by_key_bound(&op, keys, values);
        let runs = [firsts.len()];
        Ok(vec![Wanted::exact(&runs, firsts)?, Wanted::rounded(T::DTYPE, &results_shape(&op, want.len()), &want, &bound)?])
    }))
}

/// Returns the first key of each run of equal neighbours, and its values combined: floats in `f64` and not rounded,
/// integers exactly and wrapped to 32 bits. Equal is what `==` says. `None` as for [`scan`].
pub fn reduce_by_key<K: Copy + PartialEq, T: Number>(
    op: &Operator, keys: &[K], values: &[T],
) -> Option<(Vec<K>, Vec<f64>)> {
    let heads = heads(keys);
    let firsts = keys.iter().zip(&heads).filter(|(_, head)| **head != 0).map(|(key, _)| *key);
    Some((firsts.collect(), segmented_reduce(op, values, &heads)?))
}

/// Returns the error bound of each result against [`reduce_by_key`].
pub fn reduce_by_key_bound<K: Copy + PartialEq, T: Number>(op: &Operator, keys: &[K], values: &[T]) -> Vec<f64> {
    segmented_reduce_bound(op, values, &heads(keys))
}

/// 1 where a run begins.
pub(super) fn heads<K: Copy + PartialEq>(keys: &[K]) -> Vec<u32> {
    keys.iter().enumerate().map(|(i, key)| u32::from(i == 0 || *key != keys[i - 1])).collect()
}

fn judge_reduce_offsets(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, offsets) = (operator(call)?, input::<u32>(call, 1)?);
    let segments = there(call, offsets.len().saturating_sub(1))?;
    let offsets = &offsets[..offsets.len().min(segments + 1)];
    by_input!(call, 0, [f32, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let want = reduce_offsets(&op, x, offsets).ok_or_else(|| no_twin(&op))?;
        let bound = reduce_offsets_bound(&op, x, offsets);
        Ok(vec![Wanted::rounded(op.output(T::DTYPE)?, &output_shape(call, 0), &want, &bound)?])
    })
}

/// The first element of each segment, and the numbers of all its elements.
fn reduce_offsets_segments<'a, T: Number>(
    op: &Operator, input: &'a [T], offsets: &'a [u32],
) -> impl Iterator<Item = (usize, &'a [T])> {
    let each = numbers_of(op, DType::F32).0;
    let n = input.len() / each;
    offsets.windows(2).map(move |pair| {
        let begin = n.min(pair[0] as usize);
        let end = n.min(pair[1] as usize).max(begin);
        (begin, &input[begin * each..end * each])
    })
}

/// Combines the elements of each segment; an empty one gives the identity, `u32::MAX` for a position. Positions are
/// those in `input`. Floats are in `f64` and not rounded, integers exactly and wrapped to 32 bits. `None` as for
/// [`reduce`].
pub fn reduce_offsets<T: Number>(op: &Operator, input: &[T], offsets: &[u32]) -> Option<Vec<f64>> {
    let each = numbers_of(op, DType::F32).0;
    let is_position = matches!(op, Operator::ArgMin | Operator::ArgMax);
    let identity = if is_position {
        vec![f64::from(u32::MAX)]
    } else {
        scan(op, 1, 1, true, false, &vec![T::from_f64(0.0); each])?
    };
    let mut results = Vec::new();
    for (begin, segment) in reduce_offsets_segments(op, input, offsets) {
        if segment.is_empty() {
            results.extend_from_slice(&identity);
        } else {
            let of = reduce(op, 1, segment.len() / each, segment)?;
            results.extend(of.into_iter().map(|x| if is_position { x + begin as f64 } else { x }));
        }
    }
    Some(results)
}

/// Returns the error bound of each result against [`reduce_offsets`].
pub fn reduce_offsets_bound<T: Number>(op: &Operator, input: &[T], offsets: &[u32]) -> Vec<f64> {
    let (each, outputs) = numbers_of(op, DType::F32);
    let of = |(_, segment): (usize, &[T])| match segment.len() / each {
        0 => vec![0.0; outputs],
        n => reduce_bound(op, 1, n, segment),
    };
    reduce_offsets_segments(op, input, offsets).flat_map(of).collect()
}

fn judge_segmented_reduce(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, there) = (operator(call)?, there(call, input::<u32>(call, 1)?.len())?);
    let heads = front_of::<u32>(call, 1, there)?;
    by_input!(call, 0, [f32, i32, u32], T => {
        let values = front_of::<T>(call, 0, there)?;
        let want = segmented_reduce(&op, values, heads).ok_or_else(|| no_twin(&op))?;
        let bound = segmented_reduce_bound(&op, values, heads);
        Ok(vec![Wanted::rounded(T::DTYPE, &results_shape(&op, want.len()), &want, &bound)?])
    })
}

/// Combines each segment of `values`; element 0 and elements with a flag begin a segment. Floats are in `f64` and
/// not rounded, integers exactly and wrapped to 32 bits. `None` as for [`scan`].
pub fn segmented_reduce<T: Number>(op: &Operator, values: &[T], heads: &[u32]) -> Option<Vec<f64>> {
    let of = |s: Range<usize>| scan(op, 1, s.len(), false, false, &values[numbers(op, s)]);
    let last = |x: Vec<f64>| x[x.len() - numbers_of(op, DType::F32).1..].to_vec();
    segments(heads).map(|s| of(s).map(last)).collect::<Option<Vec<_>>>().map(|all| all.concat())
}

pub(super) fn results_shape(op: &Operator, len: usize) -> Vec<usize> {
    match numbers_of(op, DType::F32).1 {
        1 => vec![len],
        each => vec![len / each, each],
    }
}

/// Returns the error bound of each result against [`segmented_reduce`]: the last of [`scan_bound`].
pub fn segmented_reduce_bound<T: Number>(op: &Operator, values: &[T], heads: &[u32]) -> Vec<f64> {
    let last = |x: Vec<f64>| x[x.len() - numbers_of(op, DType::F32).1..].to_vec();
    let of = |s: Range<usize>| scan_bound(op, 1, s.len(), false, false, &values[numbers(op, s)]);
    segments(heads).flat_map(|s| last(of(s))).collect()
}

#[cfg(test)]
#[path = "tests/reduce.rs"]
mod tests;
