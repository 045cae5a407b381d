use super::prelude::*;
use super::reduce_by_key::heads;
use super::{segmented_scan, segmented_scan_bound};
use crate::primitives::Operator;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/scan_by_key.rs"]
mod tests;
