use super::prelude::*;
use super::sort::number;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/merge.rs"]
mod tests;
