//! The elements of two sorted arrays.

use super::judge::{Wanted, by_input, input};
use super::lower_bound::order;
use super::{Number, set_difference};
use crate::error::Result;
use crate::program::OpCall;
use half::f16;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let (a, b) = (input::<T>(call, 0)?, input::<T>(call, 1)?);
        let all = set_union(a, b);
        let is_sorted = |x: &[T]| x.is_sorted_by(|x, y| order(*x, *y).is_le());
        Ok(vec![if is_sorted(a) && is_sorted(b) {
            Wanted::exact(&[all.len()], all)?
        } else {
            // Only the number is promised.
            let bound = vec![f64::INFINITY; all.len()];
            Wanted::near(&[all.len()], all, bound)?
        }])
    })
}

/// Merges `a` with the elements of `b` that it lacks; equal elements of `a` come first. Floats are compared by value,
/// with NaN above all numbers.
pub fn set_union<T: Number>(a: &[T], b: &[T]) -> Vec<T> {
    let mut all = [a, &set_difference(b, a)].concat();
    all.sort_by(|x, y| order(*x, *y));
    all
}
