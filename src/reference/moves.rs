use super::prelude::*;
use crate::primitives::{Rotate, Scatter, ScatterOp};

judges! { gather => judge_gather, scatter => judge_scatter, reverse => judge_reverse, rotate => judge_rotate }

fn judge_gather(call: &OpCall) -> Result<Vec<Wanted>> {
    let there = there(call, input::<u32>(call, 1)?.len())?;
    let table = call.inputs().next().map(|table| table.shape().iter().skip(1).product());
    let (n, indices) = (table.unwrap_or(1), front_of(call, 1, there)?);
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let rows = gather(n, input::<T>(call, 0)?, indices);
        Ok(vec![Wanted::exact(&output_shape(call, 0), rows)?])
    })
}

/// Returns rows of `table`, `n` elements each, by index; zeros for an index out of range.
pub fn gather<T: Element>(n: usize, table: &[T], indices: &[u32]) -> Vec<T> {
    let zeros = vec![T::default(); n];
    let row = |&i: &u32| match (i as usize).checked_mul(n) {
        Some(at) => table.get(at..).and_then(|rest| rest.get(..n)).unwrap_or(&zeros),
        None => &zeros,
    };
    indices.iter().flat_map(row).copied().collect()
}

fn judge_scatter(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, distinct) = descriptor::<Scatter>(call)?.rule();
    let there = there(call, input::<u32>(call, 1)?.len())?;
    let (shape, indices) = (output_shape(call, 0), front_of(call, 1, there)?);
    // It is the last input: behind the length, if there is one.
    let last = call.inputs().count().saturating_sub(1);
    let (rows, n) = (shape[0], shape[1..].iter().product());
    let mut seen: Vec<_> = indices.iter().filter(|i| (**i as usize) < rows).collect();
    seen.sort_unstable();
    if distinct && seen.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(err!(InvalidArgument, "reference: indices repeat that were promised to be distinct"));
    }
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let (x, into) = (front_of::<T>(call, 0, there)?, input::<T>(call, last)?);
        let result = scatter(op, n, x, indices, into);
        Ok(vec![match op == ScatterOp::Add && call.dtype().is_float() {
            true => Wanted::near(&shape, result, scatter_bound(n, x, indices, into))?,
            false => Wanted::exact(&shape, result)?,
        }])
    })
}

/// The places in `into` and `x` of the elements that meet, in order.
fn places(n: usize, indices: &[u32], len: usize) -> impl Iterator<Item = (usize, usize)> {
    let rows = len.checked_div(n).unwrap_or(0);
    let valid = indices.iter().enumerate().filter(move |(_, to)| (**to as usize) < rows);
    valid.flat_map(move |(from, to)| (0..n).map(move |j| (*to as usize * n + j, from * n + j)))
}

/// Returns `into` with rows of `n` elements of `x` combined into it by index, in order, rounded after each step.
pub fn scatter<T: Number>(op: ScatterOp, n: usize, x: &[T], indices: &[u32], into: &[T]) -> Vec<T> {
    let key = |x: T| (x.to_f64(), !x.to_f64().is_sign_negative());
    let combined = |a: T, b: T| match op {
        ScatterOp::Set => b,
        ScatterOp::Add => T::narrow(a.widen() + b.widen()),
        _ if a.to_f64().is_nan() || b.to_f64().is_nan() => T::from_f64(f64::NAN),
        ScatterOp::Min => {
            if key(b) < key(a) {
                b
            } else {
                a
            }
        }
        ScatterOp::Max => {
            if key(b) > key(a) {
                b
            } else {
                a
            }
        }
    };
    let mut result = into.to_vec();
    for (to, from) in places(n, indices, into.len()) {
        result[to] = combined(result[to], x[from]);
    }
    result
}

/// Returns the error bound of each sum, in any order.
pub fn scatter_bound<T: Number>(n: usize, x: &[T], indices: &[u32], into: &[T]) -> Vec<f64> {
    let unit = if size_of::<T>() == 2 { 2f64.powi(-11) } else { 2f64.powi(-24) };
    let mut sums: Vec<_> = into.iter().map(|x| (x.to_f64().abs(), 1.0)).collect();
    for (to, from) in places(n, indices, into.len()) {
        sums[to] = (sums[to].0 + x[from].to_f64().abs(), sums[to].1 + 1.0);
    }
    // Both sums are off by so much.
    sums.iter().map(|(sum, terms)| 2.0 * terms * unit * sum).collect()
}

fn judge_reverse(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let x = input::<T>(call, 0)?;
        Ok(vec![Wanted::exact(&output_shape(call, 0), reverse(&x[..there(call, x.len())?]))?])
    })
}

/// Returns the elements from the last to the first.
pub fn reverse<T: Copy>(input: &[T]) -> Vec<T> {
    input.iter().rev().copied().collect()
}

fn judge_rotate(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let x = input::<T>(call, 0)?;
        let x = &x[..there(call, x.len())?];
        let by = descriptor::<Rotate>(call)?.places(x.len());
        Ok(vec![Wanted::exact(&output_shape(call, 0), rotate(by as i64, x))?])
    })
}

/// Returns the elements rotated to the left by any number of places.
pub fn rotate<T: Copy>(by: i64, input: &[T]) -> Vec<T> {
    let n = input.len() as i128;
    let from = |i: i128| input[(i + i128::from(by)).rem_euclid(n) as usize];
    (0..n).map(from).collect()
}

#[cfg(test)]
#[path = "tests/moves.rs"]
mod tests;
