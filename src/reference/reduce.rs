use super::prelude::*;
use super::states::{StatePrefixes, numbers_of, state_prefixes};
use crate::primitives::Operator;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/reduce.rs"]
mod tests;
