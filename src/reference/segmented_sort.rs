//! Stable sort by segment.

use super::judge::{Wanted, by_input, input, optional_input, output_shape, settings};
use super::sort_positions;
use crate::element::Element;
use crate::error::Result;
use crate::program::OpCall;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (shape, offsets) = (output_shape(call, 0), input::<u32>(call, 1)?);
    by_input!(call, 0, [f32, i32, u32], T => {
        let keys = input::<T>(call, 0)?;
        let places = segmented_sort_positions(keys, offsets, settings(call)?.has("descending"));
        let mut all = vec![Wanted::exact(&shape, places.iter().map(|&i| keys[i]).collect::<Vec<T>>())?];
        if let Some(values) = optional_input::<u32>(call, 2)? {
            all.push(Wanted::exact(&shape, places.iter().map(|&i| values[i]).collect::<Vec<u32>>())?);
        }
        Ok(all)
    })
}

/// Returns the positions of the keys in sorted order, segment by segment. The segment of a position is the number of
/// offsets that are at most the position, found by bisection: at `begin + (end - begin) / 2`, whatever they hold.
pub fn segmented_sort_positions<T: Element>(keys: &[T], offsets: &[u32], descending: bool) -> Vec<usize> {
    let mut places = sort_positions(keys, descending, 0..8 * size_of::<T>() as u32);
    places.sort_by_cached_key(|&i| {
        let (mut begin, mut end) = (0, offsets.len());
        while begin < end {
            let middle = begin + (end - begin) / 2;
            if offsets[middle] as usize <= i { begin = middle + 1 } else { end = middle }
        }
        begin
    });
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_by_hand() {
        let of = |offsets: &[u32]| segmented_sort_positions(&[3u32, 1, 2, 1, 0], offsets, false);
        assert_eq!(of(&[0, 3, 3, 5]), [1, 2, 0, 4, 3]);
        assert_eq!(of(&[0]), [4, 1, 3, 2, 0]);
        assert_eq!(of(&[1, 2, 9]), [0, 1, 4, 3, 2]);
        assert_eq!(segmented_sort_positions(&[1.0f32, f32::NAN, 2.0], &[0, 3], true), [2, 0, 1]);
    }
}
