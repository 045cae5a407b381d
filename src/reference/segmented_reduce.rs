use super::prelude::*;
use super::segmented_scan::{numbers, segments};
use super::states::numbers_of;
use super::{scan, scan_bound};
use crate::primitives::Operator;
use std::ops::Range;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

/// The shape of an array of results with `len` numbers in all.
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
#[path = "tests/segmented_reduce.rs"]
mod tests;
