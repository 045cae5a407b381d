use super::prelude::*;
use super::sort_positions;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (k, smallest) = (option(call, "k")?, settings(call)?.has("smallest"));
    let (mut wanted, places) = by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let x = &x[..there(call, x.len())?];
        let places = top_k(x, k, smallest);
        let k = places.len();
        let best: Vec<T> = places.iter().map(|&i| x[i]).collect();
        let places: Vec<u32> = places.iter().map(|&i| i as u32).collect();
        Ok((vec![Wanted::exact(&[k], best)?, Wanted::exact(&[k], places.clone())?], places))
    })?;
    let given = 1 + usize::from(named::<u32>(call, "length")?.is_some());
    for at in given..call.inputs().count() {
        wanted.push(payload(call, at, &[places.len()], &places)?);
    }
    Ok(wanted)
}

/// The elements of input `at` at these places, and zeros at places behind it.
pub(super) fn payload(call: &OpCall, at: usize, shape: &[usize], places: &[u32]) -> Result<Wanted> {
    by_input!(call, at, [f32, f16, i32, u32, u8, i8], T => {
        let x = input::<T>(call, at)?;
        let of = |i: &u32| x.get(*i as usize).copied().unwrap_or_default();
        Wanted::exact(shape, places.iter().map(of).collect::<Vec<T>>())
    })
}

/// Returns the positions of the `k` best elements: the front of a stable sort, largest or smallest first. Every
/// NaN is worse than every number, and of equal elements the first is the best.
pub fn top_k<T: Element>(input: &[T], k: usize, smallest: bool) -> Vec<usize> {
    let width = if T::DTYPE == DType::U64 { 64 } else { 32 };
    let mut positions = sort_positions(input, !smallest, 0..width);
    positions.truncate(k);
    positions
}

#[cfg(test)]
#[path = "tests/top_k.rs"]
mod tests;
