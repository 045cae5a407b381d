//! The elements that two sorted arrays share.

use super::Number;
use super::judge::{Wanted, by_input, input};
use super::lower_bound::{bisect, order};
use crate::error::Result;
use crate::program::OpCall;
use half::f16;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let shared = set_intersection(input::<T>(call, 0)?, input::<T>(call, 1)?);
        Ok(vec![Wanted::exact(&[shared.len()], shared)?])
    })
}

/// Whether element `i` of `a` has a partner in `b`: its place there, and its distance from its place in the elements
/// of `a` before it if the last of those is equal.
pub(super) fn has_partner<T: Number>(a: &[T], i: usize, b: &[T]) -> bool {
    let place_in = |sorted| bisect(sorted, &a[i..=i], std::cmp::Ordering::is_lt)[0] as usize;
    let equal = |x, y| order(x, y).is_eq();
    let rank = if i > 0 && equal(a[i - 1], a[i]) { i - place_in(&a[..i]) } else { 0 };
    b.get(place_in(b) + rank).is_some_and(|&x| equal(x, a[i]))
}

/// Returns the elements of `a` that have a partner in `b`, in order. Of sorted arrays that is the intersection of
/// multisets. Floats are compared by value, with NaN above all numbers.
pub fn set_intersection<T: Number>(a: &[T], b: &[T]) -> Vec<T> {
    (0..a.len()).filter(|&i| has_partner(a, i, b)).map(|i| a[i]).collect()
}

#[cfg(test)]
#[path = "tests/set_intersection.rs"]
mod tests;
