use super::prelude::*;
use super::{segmented_scan, segmented_scan_bound};
use crate::primitives::Operator;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/scan_offsets.rs"]
mod tests;
