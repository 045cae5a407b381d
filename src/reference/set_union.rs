use super::lower_bound::order;
use super::merge::{front, lengths};
use super::prelude::*;
use super::set_difference_positions;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (lens, given) = lengths(call)?;
    let (places, sorted) = by_input!(call, 0, [f32, f16, i32, u32], T => {
        let (a, b) = (front(input::<T>(call, 0)?, lens[0]), front(input::<T>(call, 1)?, lens[1]));
        let is_sorted = |x: &[T]| x.is_sorted_by(|x, y| order(*x, *y).is_le());
        Ok((set_union_positions(a, b), is_sorted(a) && is_sorted(b)))
    })?;
    let moved = |first: usize| {
        by_input!(call, first, [f32, f16, i32, u32, u8, i8], T => {
            let (a, b) = (front(input::<T>(call, first)?, lens[0]), front(input::<T>(call, first + 1)?, lens[1]));
            let all: Vec<T> = places.iter().map(|&i| if i < a.len() { a[i] } else { b[i - a.len()] }).collect();
            if sorted {
                return Wanted::exact(&[all.len()], all);
            }
            // Only the number is promised.
            let bound = vec![f64::INFINITY; all.len()];
            Wanted::near(&[all.len()], all, bound)
        })
    };
    let firsts = [0].into_iter().chain((call.inputs().count() > 2 + given).then_some(2 + given));
    firsts.map(moved).collect()
}

/// Merges `a` with the elements of `b` that it lacks; equal elements of `a` come first. Floats are compared by value,
/// with NaN above all numbers.
pub fn set_union<T: Number>(a: &[T], b: &[T]) -> Vec<T> {
    let both = [a, b].concat();
    set_union_positions(a, b).into_iter().map(|i| both[i]).collect()
}

/// Returns for each element of [`set_union`] its position in `a` followed by `b`.
pub fn set_union_positions<T: Number>(a: &[T], b: &[T]) -> Vec<usize> {
    let lacked = set_difference_positions(b, a).into_iter().map(|j| a.len() + j);
    let mut all: Vec<_> = (0..a.len()).chain(lacked).collect();
    let at = |i: usize| if i < a.len() { a[i] } else { b[i - a.len()] };
    all.sort_by(|&i, &j| order(at(i), at(j)));
    all
}
