use super::prelude::*;
use std::cmp::Ordering;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let [sorted, needles] = searched::<T>(call)?;
        let places = lower_bound(sorted, needles);
        Ok(vec![Wanted::exact(&output_shape(call, 0), places)?])
    })
}

/// The sorted elements and the needles that there are.
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

#[cfg(test)]
#[path = "tests/lower_bound.rs"]
mod tests;
