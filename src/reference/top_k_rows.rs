use super::prelude::*;
use super::top_k;
use super::top_k::payload;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (k, smallest) = (option(call, "k")?, settings(call)?.has("smallest"));
    let (shape, n) = (output_shape(call, 0), call.inputs().next().map_or(1, |x| *x.shape().last().unwrap_or(&1)));
    let offsets = named::<u32>(call, "offsets")?;
    let (mut wanted, places) = by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let (values, indices) = match offsets {
            None => top_k_rows(front_of(call, 0, shape[0])?, n, k, smallest),
            Some(offsets) => top_k_segments(x, offsets, k, smallest),
        };
        let in_row = |(at, i): (usize, &u32)| if offsets.is_some() { *i } else { (at / k * n) as u32 + i };
        let places: Vec<u32> = indices.iter().enumerate().map(in_row).collect();
        Ok((vec![Wanted::exact(&shape, values)?, Wanted::exact(&shape, indices)?], places))
    })?;
    let given = 1 + usize::from(offsets.is_some() || settings(call)?.has("length"));
    wanted.extend(
        (given..call.inputs().count()).map(|at| payload(call, at, &shape, &places)).collect::<Result<Vec<_>>>()?,
    );
    if offsets.is_some_and(|offsets| !offsets.is_sorted()) {
        // Nothing is promised.
        wanted.iter_mut().for_each(|want| want.bound = Some(vec![f64::INFINITY; shape.iter().product()]));
    }
    Ok(wanted)
}

/// Returns the `k` best elements of each row of `n`, in order, and their positions in the row: [`top_k`] of each row.
pub fn top_k_rows<T: Element>(input: &[T], n: usize, k: usize, smallest: bool) -> (Vec<T>, Vec<u32>) {
    let of_row = |row| top_k(row, k, smallest).into_iter().map(move |i| (row[i], i as u32));
    input.chunks(n.max(1)).flat_map(of_row).unzip()
}

/// Returns the `k` best elements of each segment between offsets, in order, and their positions in the input. Behind a
/// shorter segment are zeros at no position.
pub fn top_k_segments<T: Element>(input: &[T], offsets: &[u32], k: usize, smallest: bool) -> (Vec<T>, Vec<u32>) {
    let of_segment = |pair: &[u32]| {
        let begin = input.len().min(pair[0] as usize);
        let end = input.len().min(pair[1] as usize).max(begin);
        let best = top_k(&input[begin..end], k, smallest).into_iter().map(move |i| begin + i);
        let best = best.map(|i| (input[i], i as u32));
        best.chain(std::iter::repeat((T::default(), u32::MAX))).take(k)
    };
    offsets.windows(2).flat_map(of_segment).unzip()
}

#[cfg(test)]
#[path = "tests/top_k_rows.rs"]
mod tests;
