use super::prelude::*;
use super::sort::moved_values;
use super::sort_positions;
use crate::primitives::MergeSort;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    if descriptor::<MergeSort>(call)?.is_custom() {
        return Err(err!(Unsupported, "reference: there is none for a comparison in WGSL"));
    }
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let (keys, settings) = (input::<T>(call, 0)?, settings(call)?);
        let keys = &keys[..there(call, keys.len())?];
        let places = sort_positions(keys, settings.has("descending"), 0..8 * size_of::<T>() as u32);
        let sorted: Vec<T> = places.iter().map(|&i| keys[i]).collect();
        let mut all = vec![Wanted::exact(&[sorted.len()], sorted)?];
        if call.inputs().count() > 1 + usize::from(settings.array("length").is_some()) {
            all.push(moved_values(call, 1, &places)?);
        }
        Ok(all)
    })
}

/// Sorts positions by `less` of their keys, stably, by insertion: some permutation whatever `less` is.
pub fn merge_sort_positions<T: Copy>(keys: &[T], less: impl Fn(T, T) -> bool) -> Vec<usize> {
    let mut sorted: Vec<usize> = Vec::with_capacity(keys.len());
    for i in 0..keys.len() {
        let place = sorted.partition_point(|&other| !less(keys[i], keys[other]));
        sorted.insert(place, i);
    }
    sorted
}

#[cfg(test)]
#[path = "tests/merge_sort.rs"]
mod tests;
