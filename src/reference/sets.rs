use super::prelude::*;
use super::sort::number;
use std::cmp::Ordering;

judges! {
    merge => judge_merge, set_union => judge_set_union, set_intersection => judge_set_intersection,
    set_difference => judge_set_difference, unique_by_key => judge_unique_by_key,
    lower_bound => judge_lower_bound, upper_bound => judge_upper_bound, find => judge_find
}

fn judge_merge(call: &OpCall) -> Result<Vec<Wanted>> {
    let descending = settings(call)?.has("descending");
    let (lens, given) = lengths(call)?;
    let inputs = call.inputs().count() - given;
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let (a, b) = (front(input::<T>(call, 0)?, lens[0]), front(input::<T>(call, 1)?, lens[1]));
        let is_sorted = |x: &[T]| x.is_sorted_by_key(|x| number(*x, descending));
        let places = merge_positions(a, b, descending);
        let sorted = is_sorted(a) && is_sorted(b);
        let mut all = vec![moved([a, b], &places, sorted)?];
        if inputs > 2 {
            let values = [front(input::<u32>(call, 2)?, lens[0]), front(input::<u32>(call, 3)?, lens[1])];
            all.push(moved(values, &places, sorted)?);
        }
        Ok(all)
    })
}

/// The lengths of both arrays, and how many inputs hold them: both if one is given.
pub(super) fn lengths(call: &OpCall) -> Result<([usize; 2], usize)> {
    let of = |name| -> Result<Option<usize>> {
        Ok(named::<u32>(call, name)?.and_then(|length| length.first()).map(|length| *length as usize))
    };
    let lens = [of("a-length")?, of("b-length")?];
    Ok((lens.map(|len| len.unwrap_or(usize::MAX)), if lens == [None; 2] { 0 } else { 2 }))
}

pub(super) fn front<T>(x: &[T], len: usize) -> &[T] {
    &x[..x.len().min(len)]
}

/// Expects the elements of two arrays at these places of both. Nothing is promised of unsorted inputs.
fn moved<T: Element>(x: [&[T]; 2], places: &[usize], sorted: bool) -> Result<Wanted>
where
    HostData: From<Vec<T>>,
{
    let x = x.concat();
    let elements = places.iter().map(|&i| x[i]).collect();
    match sorted {
        true => Wanted::exact(&[places.len()], elements),
        false => Wanted::near(&[places.len()], elements, vec![f64::INFINITY; places.len()]),
    }
}

/// Returns for each element of the merged array its position in `a` followed by `b`, in the order of
/// [`sort_positions`](super::sort_positions).
pub fn merge_positions<T: Element>(a: &[T], b: &[T], descending: bool) -> Vec<usize> {
    let (mut i, mut j) = (0, 0);
    let mut next = || {
        let take_b = i == a.len() || j < b.len() && number(b[j], descending) < number(a[i], descending);
        let from = if take_b { &mut j } else { &mut i };
        *from += 1;
        if take_b { a.len() + j - 1 } else { i - 1 }
    };
    (0..a.len() + b.len()).map(|_| next()).collect()
}

fn judge_set_union(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_set_intersection(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_set_difference(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_unique_by_key(call: &OpCall) -> Result<Vec<Wanted>> {
    // The values are the last input: behind the length, if there is one.
    let last = call.inputs().count().saturating_sub(1);
    by_input!(call, 0, [f32, f16, i32, u32], K => by_input!(call, last, [f32, i32, u32], V => {
        let there = there(call, input::<K>(call, 0)?.len())?;
        let (keys, values) = unique_by_key(front_of::<K>(call, 0, there)?, front_of::<V>(call, last, there)?);
        Ok(vec![Wanted::exact(&[keys.len()], keys)?, Wanted::exact(&[values.len()], values)?])
    }))
}

/// Returns the first key of each run, in order, and its value. `==` decides: -0 equals +0, NaN equals nothing.
pub fn unique_by_key<K: Copy + PartialEq, V: Copy>(keys: &[K], values: &[V]) -> (Vec<K>, Vec<V>) {
    let head = |&(i, (key, _)): &(usize, (&K, &V))| i == 0 || *key != keys[i - 1];
    keys.iter().zip(values).enumerate().filter(head).map(|(_, (key, value))| (*key, *value)).unzip()
}

fn judge_lower_bound(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let [sorted, needles] = searched::<T>(call)?;
        let places = lower_bound(sorted, needles);
        Ok(vec![Wanted::exact(&output_shape(call, 0), places)?])
    })
}

pub(super) fn searched<T: Element>(call: &OpCall) -> Result<[&[T]; 2]> {
    let (sorted, needles) = (input::<T>(call, 0)?, input::<T>(call, 1)?);
    let len = named::<u32>(call, "sorted-length")?.and_then(|length| length.first());
    let len = len.map_or(sorted.len(), |len| sorted.len().min(*len as usize));
    Ok([&sorted[..len], &needles[..there(call, needles.len())?]])
}

/// Compares by value, with NaN above all numbers.
pub(super) fn order<T: Number>(a: T, b: T) -> Ordering {
    let (a, b) = (a.to_f64(), b.to_f64());
    a.partial_cmp(&b).unwrap_or(a.is_nan().cmp(&b.is_nan()))
}

/// Bisects for the first element that is not before each needle.
pub(super) fn bisect<T: Number>(sorted: &[T], needles: &[T], is_before: fn(Ordering) -> bool) -> Vec<u32> {
    let place = |needle: &T| {
        let (mut begin, mut end) = (0, sorted.len());
        while begin < end {
            let middle = begin + (end - begin) / 2;
            if is_before(order(sorted[middle], *needle)) { begin = middle + 1 } else { end = middle }
        }
        begin as u32
    };
    needles.iter().map(place).collect()
}

/// Returns for each needle the number of sorted elements below it.
pub fn lower_bound<T: Number>(sorted: &[T], needles: &[T]) -> Vec<u32> {
    bisect(sorted, needles, Ordering::is_lt)
}

fn judge_upper_bound(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let [sorted, needles] = searched::<T>(call)?;
        let places = upper_bound(sorted, needles);
        Ok(vec![Wanted::exact(&output_shape(call, 0), places)?])
    })
}

/// Returns for each needle the number of sorted elements that are at most the needle.
pub fn upper_bound<T: Number>(sorted: &[T], needles: &[T]) -> Vec<u32> {
    bisect(sorted, needles, Ordering::is_le)
}

fn judge_find(call: &OpCall) -> Result<Vec<Wanted>> {
    let lengths = usize::from(named::<u32>(call, "length")?.is_some());
    let holds: Vec<bool> = by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let y = if call.inputs().count() > 1 + lengths { input::<T>(call, 1)?.to_vec() } else { vec![T::default(); x.len()] };
        Ok(x.iter().zip(&y).map(|(x, y)| x != y).collect())
    })?;
    let found = find(&holds[..there(call, holds.len())?]);
    Ok(vec![Wanted::exact(&[2], found.to_vec())?])
}

/// Returns the first place that is true, or the number of places, and how many are true.
pub fn find(holds: &[bool]) -> [u32; 2] {
    let first = holds.iter().position(|x| *x).unwrap_or(holds.len());
    [first as u32, holds.iter().filter(|x| **x).count() as u32]
}

#[cfg(test)]
#[path = "tests/sets.rs"]
mod tests;
