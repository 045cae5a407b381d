use super::prelude::*;
use super::segmented_reduce::results_shape;
use super::{segmented_reduce, segmented_reduce_bound};
use crate::primitives::Operator;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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
/// integers exactly and wrapped to 32 bits. Equal is what `==` says. `None` as for [`scan`](super::scan).
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

#[cfg(test)]
#[path = "tests/reduce_by_key.rs"]
mod tests;
