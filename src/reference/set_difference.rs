use super::prelude::*;
use super::set_intersection::{kept, partners};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    kept(call, true)
}

/// Returns the elements of `a` that [`set_intersection`](super::set_intersection()) drops, in order.
pub fn set_difference<T: Number>(a: &[T], b: &[T]) -> Vec<T> {
    set_difference_positions(a, b).into_iter().map(|i| a[i]).collect()
}

/// Returns the positions in `a` of the elements of [`set_difference`].
pub fn set_difference_positions<T: Number>(a: &[T], b: &[T]) -> Vec<usize> {
    partners(a, b, true)
}
