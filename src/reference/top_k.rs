//! The best of all elements.

use super::sort_positions;
use crate::element::{DType, Element};

/// Positions of the `k` best elements, the best first: the front of a stable sort, largest or smallest first. Every
/// NaN is worse than every number, and of equal elements the first is the best.
pub fn top_k<T: Element>(input: &[T], k: usize, smallest: bool) -> Vec<usize> {
    let width = if T::DTYPE == DType::U64 { 64 } else { 32 };
    let mut positions = sort_positions(input, !smallest, 0..width);
    positions.truncate(k);
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_by_hand() {
        assert_eq!(top_k(&[3u32, 1, 4, 1, 5, 9, 2, 6], 3, false), [5, 7, 4]);
        assert_eq!(top_k(&[3u32, 1, 4, 1, 5, 9, 2, 6], 3, true), [1, 3, 6]);
        assert_eq!(top_k(&[7, -7, 7, 0], 2, false), [0, 2]);
        let floats = [f32::NAN, 0.0, -0.0, f32::INFINITY, -1.0, f32::NAN];
        assert_eq!(top_k(&floats, 6, false), [3, 1, 2, 4, 0, 5]);
        assert_eq!(top_k(&floats, 5, true), [4, 2, 1, 3, 0]);
    }
}
