use super::prelude::*;
use super::states::numbers_of;
use super::{scan, scan_bound};
use crate::primitives::Operator;
use std::ops::Range;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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
#[path = "tests/segmented_scan.rs"]
mod tests;
