use super::prelude::*;
use super::sort::moved_values;
use super::sort_positions;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (shape, offsets) = (output_shape(call, 0), input::<u32>(call, 1)?);
    by_input!(call, 0, [f32, i32, u32], T => {
        let keys = input::<T>(call, 0)?;
        let places = segmented_sort_positions(keys, offsets, settings(call)?.has("descending"));
        let mut all = vec![Wanted::exact(&shape, places.iter().map(|&i| keys[i]).collect::<Vec<T>>())?];
        if call.inputs().count() > 2 {
            all.push(moved_values(call, 2, &places)?);
        }
        Ok(all)
    })
}

/// Returns the positions of the keys in sorted order, segment by segment. Each offset below the number of keys begins a
/// segment, in any order; so does key 0.
pub fn segmented_sort_positions<T: Element>(keys: &[T], offsets: &[u32], descending: bool) -> Vec<usize> {
    let mut segment = vec![0; keys.len()];
    for &offset in offsets {
        if let Some(head) = segment.get_mut(offset as usize) {
            *head = 1;
        }
    }
    for i in 1..segment.len() {
        segment[i] += segment[i - 1];
    }
    let mut places = sort_positions(keys, descending, 0..8 * size_of::<T>() as u32);
    places.sort_by_key(|&i| segment[i]);
    places
}

#[cfg(test)]
#[path = "tests/segmented_sort.rs"]
mod tests;
