use super::lower_bound::{bisect, order};
use super::merge::{front, lengths};
use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    kept(call, false)
}

/// The elements of the first input without a partner in the second (`alone`), or with one, and their values.
pub(super) fn kept(call: &OpCall, alone: bool) -> Result<Vec<Wanted>> {
    let (lens, given) = lengths(call)?;
    let places = by_input!(call, 0, [f32, f16, i32, u32], T => {
        Ok(partners(front(input::<T>(call, 0)?, lens[0]), front(input::<T>(call, 1)?, lens[1]), alone))
    })?;
    let moved = |at: usize| {
        by_input!(call, at, [f32, f16, i32, u32, u8, i8], T => {
            let x = input::<T>(call, at)?;
            Wanted::exact(&[places.len()], places.iter().map(|&i| x[i]).collect::<Vec<T>>())
        })
    };
    [0].into_iter().chain(2 + given..call.inputs().count()).map(moved).collect()
}

/// Whether element `i` of `a` has a partner in `b`: its place there, and its distance from its place in the elements
/// of `a` before it if the last of those is equal.
pub(super) fn has_partner<T: Number>(a: &[T], i: usize, b: &[T]) -> bool {
    let place_in = |sorted| bisect(sorted, &a[i..=i], std::cmp::Ordering::is_lt)[0] as usize;
    let equal = |x, y| order(x, y).is_eq();
    let rank = if i > 0 && equal(a[i - 1], a[i]) { i - place_in(&a[..i]) } else { 0 };
    b.get(place_in(b) + rank).is_some_and(|&x| equal(x, a[i]))
}

/// The positions in `a` of elements without a partner in `b` (`alone`), or with one.
pub(super) fn partners<T: Number>(a: &[T], b: &[T], alone: bool) -> Vec<usize> {
    (0..a.len()).filter(|&i| has_partner(a, i, b) != alone).collect()
}

/// Returns the elements of `a` that have a partner in `b`, in order. Of sorted arrays that is the intersection of
/// multisets. Floats are compared by value, with NaN above all numbers.
pub fn set_intersection<T: Number>(a: &[T], b: &[T]) -> Vec<T> {
    set_intersection_positions(a, b).into_iter().map(|i| a[i]).collect()
}

/// Returns the positions in `a` of the elements of [`set_intersection`].
pub fn set_intersection_positions<T: Number>(a: &[T], b: &[T]) -> Vec<usize> {
    partners(a, b, false)
}

#[cfg(test)]
#[path = "tests/set_intersection.rs"]
mod tests;
