use super::prelude::*;
use super::reduce::heads;
use super::states::{numbers_of, scan_states};
use crate::primitives::Operator;
use std::ops::Range;

judges! {
    scan => judge_scan, scan_by_key => judge_scan_by_key, scan_offsets => judge_scan_offsets,
    segmented_scan => judge_segmented_scan
}

fn judge_scan(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, shape) = (operator(call)?, output_shape(call, 0));
    let [exclusive, reverse] = [settings(call)?.has("exclusive"), settings(call)?.has("reverse")];
    let outputs = numbers_of(&op, DType::F32).1;
    let (rows, n) = match shape[..] {
        [rows, n, _] => (rows, n),
        [n, _] if outputs > 1 => (1, n),
        [rows, n] => (rows, n),
        _ => (1, shape.iter().product()),
    };
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = front_of::<T>(call, 0, shape.first().copied().unwrap_or(0))?;
        let want = scan(&op, rows, n, exclusive, reverse, x).ok_or_else(|| no_twin(&op))?;
        let bound = scan_bound(&op, rows, n, exclusive, reverse, x);
        Ok(vec![Wanted::rounded(T::DTYPE, &shape, &want, &bound)?])
    })
}

/// Computes all prefixes of each of `rows` rows of `n` elements: floats in `f64` and not rounded, integers exactly
/// and wrapped to 32 bits. `None` for a user's operator (see [`scan_with`]) and for positions. Operators over a state
/// take and give as many numbers for an element as the op.
pub fn scan<T: Number>(
    op: &Operator, rows: usize, n: usize, exclusive: bool, reverse: bool, input: &[T],
) -> Option<Vec<f64>> {
    if let Some((values, _)) = scan_states(op, rows, n, (exclusive, reverse), input) {
        return Some(values);
    }
    let float = T::DTYPE.is_float();
    let wrap = |x: i64| if T::DTYPE == DType::I32 { f64::from(x as i32) } else { f64::from(x as u32) };
    let integer = |a: f64, b: f64, f: fn(i64, i64) -> i64| wrap(f(a as i64, b as i64));
    let nan_or = |a: f64, b: f64, x: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { x };
    let (least, greatest) = match T::DTYPE {
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::U32 => (0.0, f64::from(u32::MAX)),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    let input: Vec<f64> = input.iter().map(|x| x.to_f64()).collect();
    let run = |identity, f: &dyn Fn(f64, f64) -> f64| Some(scan_with(rows, n, exclusive, reverse, &input, identity, f));
    match op {
        Operator::Sum if float => run(0.0, &|a, b| a + b),
        Operator::Prod if float => run(1.0, &|a, b| a * b),
        Operator::Sum => run(0.0, &|a, b| integer(a, b, i64::wrapping_add)),
        Operator::Prod => run(1.0, &|a, b| integer(a, b, i64::wrapping_mul)),
        Operator::Min => run(greatest, &|a, b| nan_or(a, b, a.min(b))),
        Operator::Max => run(least, &|a, b| nan_or(a, b, a.max(b))),
        _ => None,
    }
}

/// Computes all prefixes of each row by a custom operator. Operands keep the order of the scan: in a reverse scan later
/// elements of the row are on the left.
pub fn scan_with<T: Copy>(
    rows: usize, n: usize, exclusive: bool, reverse: bool, input: &[T], identity: T, combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut output = input.to_vec();
    for row in 0..rows {
        let mut run = identity;
        for i in 0..n {
            let at = row * n + if reverse { n - 1 - i } else { i };
            let before = run;
            run = combine(run, input[at]);
            output[at] = if exclusive { before } else { run };
        }
    }
    output
}

/// Returns the error bound of each result against [`scan`] for the op in f32, for elements of type `T`.
///
/// A sum in any order errs by at most `gamma(depth) sum |x|`, with `gamma(j) = j u / (1 - j u)`, u = 2^-24
/// (Higham, *Accuracy and Stability of Numerical Algorithms*, section 4.2). No element takes part in more
/// additions than there are before it, nor in more than the vec4 and trees of three levels have and one a
/// tile of 256 elements. A product errs by `gamma(n)` of itself. Everything else is exact. Rounding to f16
/// comes on top.
pub fn scan_bound<T: Number>(
    op: &Operator, rows: usize, n: usize, exclusive: bool, reverse: bool, input: &[T],
) -> Vec<f64> {
    if let Some((_, bounds)) = scan_states(op, rows, n, (exclusive, reverse), input) {
        return bounds;
    }
    if !T::DTYPE.is_float() || !matches!(op, Operator::Sum | Operator::Prod) {
        return vec![0.0; rows * n];
    }
    let u = 2f64.powi(-24);
    let gamma = |j: f64| if j * u < 1.0 { j * u / (1.0 - j * u) } else { f64::INFINITY };
    let half_step = if T::DTYPE == DType::F16 { 2f64.powi(-11) } else { 0.0 };
    let numbers: Vec<f64> = input.iter().map(|x| x.to_f64()).collect();
    let sizes: Vec<f64> = numbers.iter().map(|x| x.abs()).collect();
    let along = |x: &[f64], identity, f: fn(f64, f64) -> f64| scan_with(rows, n, exclusive, reverse, x, identity, f);
    let count = n as f64;
    if *op == Operator::Sum {
        let depth = count.min(64.0 + 3.0 * count.max(1.0).log2() + count / 256.0);
        let sums = along(&numbers, 0.0, |a, b| a + b);
        let of_sizes = along(&sizes, 0.0, |a, b| a + b);
        let bound =
            |(sum, size): (f64, f64)| gamma(depth) * size + half_step * sum.abs() + f64::from(f32::MIN_POSITIVE);
        sums.into_iter().zip(of_sizes).map(bound).collect()
    } else {
        let products = along(&sizes, 1.0, |a, b| a * b);
        let bound = |x: f64| (gamma(count) + half_step) * x + count * f64::from(f32::MIN_POSITIVE);
        products.into_iter().map(bound).collect()
    }
}

fn judge_scan_by_key(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, exclusive) = (operator(call)?, settings(call)?.has("exclusive"));
    by_input!(call, 0, [f32, i32, u32], K => by_input!(call, 1, [f32, f16, i32, u32], T => {
        let n = output_shape(call, 0).first().copied().unwrap_or(0);
        let (keys, x) = (front_of::<K>(call, 0, n)?, front_of::<T>(call, 1, n)?);
        let want = scan_by_key(&op, exclusive, keys, x).ok_or_else(|| no_twin(&op))?;
        let bound = scan_by_key_bound(&op, exclusive, keys, x);
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &want, &bound)?])
    }))
}

/// Computes all prefixes of each run of equal neighbours among the keys: floats in `f64` and not rounded, integers
/// exactly and wrapped to 32 bits. Equal is what `==` says. `None` as for [`scan`](super::scan).
pub fn scan_by_key<K: Copy + PartialEq, T: Number>(
    op: &Operator, exclusive: bool, keys: &[K], input: &[T],
) -> Option<Vec<f64>> {
    segmented_scan(op, exclusive, input, &heads(keys))
}

/// Returns the error bound of each result against [`scan_by_key`].
pub fn scan_by_key_bound<K: Copy + PartialEq, T: Number>(
    op: &Operator, exclusive: bool, keys: &[K], input: &[T],
) -> Vec<f64> {
    segmented_scan_bound(op, exclusive, input, &heads(keys))
}

fn judge_scan_offsets(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, exclusive) = (operator(call)?, settings(call)?.has("exclusive"));
    let shape = output_shape(call, 0);
    let n = shape.first().copied().unwrap_or(0);
    let heads = heads_at(n, input::<u32>(call, 1)?);
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = front_of::<T>(call, 0, n)?;
        let want = segmented_scan(&op, exclusive, x, &heads).ok_or_else(|| no_twin(&op))?;
        let bound = segmented_scan_bound(&op, exclusive, x, &heads);
        Ok(vec![Wanted::rounded(T::DTYPE, &shape, &want, &bound)?])
    })
}

/// Returns a flag for each of `n` elements: 1 at each offset that is below `n`.
pub(super) fn heads_at(n: usize, offsets: &[u32]) -> Vec<u32> {
    let mut heads = vec![0; n];
    for offset in offsets.iter().map(|&offset| offset as usize).filter(|&offset| offset < n) {
        heads[offset] = 1;
    }
    heads
}

/// Computes all prefixes of each segment: each offset below the number of elements begins one, and element 0. As
/// [`segmented_scan`] otherwise. Elements have one number.
pub fn scan_offsets<T: Number>(op: &Operator, exclusive: bool, input: &[T], offsets: &[u32]) -> Option<Vec<f64>> {
    segmented_scan(op, exclusive, input, &heads_at(input.len(), offsets))
}

/// Returns the error bound of each result against [`scan_offsets`].
pub fn scan_offsets_bound<T: Number>(op: &Operator, exclusive: bool, input: &[T], offsets: &[u32]) -> Vec<f64> {
    segmented_scan_bound(op, exclusive, input, &heads_at(input.len(), offsets))
}

fn judge_segmented_scan(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, exclusive) = (operator(call)?, settings(call)?.has("exclusive"));
    let n = output_shape(call, 0).first().copied().unwrap_or(0);
    let heads = front_of::<u32>(call, 1, n)?;
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = front_of::<T>(call, 0, n)?;
        let want = segmented_scan(&op, exclusive, x, heads).ok_or_else(|| no_twin(&op))?;
        let bound = segmented_scan_bound(&op, exclusive, x, heads);
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &want, &bound)?])
    })
}

/// Computes all prefixes of each segment of `input`; element 0 and elements with a flag begin a segment. Floats are
/// in `f64` and not rounded, integers exactly and wrapped to 32 bits. `None` as for [`scan`].
pub fn segmented_scan<T: Number>(op: &Operator, exclusive: bool, input: &[T], heads: &[u32]) -> Option<Vec<f64>> {
    let of = |s: Range<usize>| scan(op, 1, s.len(), exclusive, false, &input[numbers(op, s)]);
    segments(heads).map(of).collect::<Option<Vec<_>>>().map(|all| all.concat())
}

/// Returns the error bound of each result against [`segmented_scan`]: that of [`scan_bound`] for its segment.
pub fn segmented_scan_bound<T: Number>(op: &Operator, exclusive: bool, input: &[T], heads: &[u32]) -> Vec<f64> {
    segments(heads).flat_map(|s| scan_bound(op, 1, s.len(), exclusive, false, &input[numbers(op, s)])).collect()
}

pub(super) fn numbers(op: &Operator, elements: Range<usize>) -> Range<usize> {
    let inputs = numbers_of(op, DType::F32).0;
    elements.start * inputs..elements.end * inputs
}

pub(super) fn segments(heads: &[u32]) -> impl Iterator<Item = Range<usize>> {
    let begins = |&at: &usize| at == 0 || heads[at] != 0;
    let mut starts: Vec<usize> = (0..heads.len()).filter(begins).collect();
    starts.push(heads.len());
    (0..starts.len().saturating_sub(1)).map(move |i| starts[i]..starts[i + 1])
}

#[cfg(test)]
#[path = "tests/scan.rs"]
mod tests;
