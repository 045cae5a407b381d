use super::prelude::*;
use super::sets::order;
use crate::primitives::{MergeSort, Quantile};
use std::ops::Range;

judges! {
    sort => judge_sort, argsort => judge_argsort, merge_sort => judge_merge_sort,
    segmented_sort => judge_segmented_sort, nth_element => judge_nth_element, quantile => judge_quantile,
    top_k => judge_top_k, top_k_rows => judge_top_k_rows, is_sorted => judge_is_sorted
}

fn judge_sort(call: &OpCall) -> Result<Vec<Wanted>> {
    let (settings, bits) = (settings(call)?, bits_asked(call)?);
    by_input!(call, 0, [f32, i32, u32, f16, u8, i8], T => {
        let keys = input::<T>(call, 0)?;
        let there = there(call, keys.len())?;
        let places = sort_positions(&keys[..there], settings.has("descending"), bits);
        let mut all = vec![moved(call, keys, &places)?];
        if call.inputs().count() > 1 + usize::from(settings.array("length").is_some()) {
            all.push(moved_values(call, 1, &places)?);
        }
        Ok(all)
    })
}

/// Returns the bits that the option `bits` names, or all.
pub(super) fn bits_asked(call: &OpCall) -> Result<Range<u32>> {
    let settings = settings(call)?;
    let [begin, end] = if settings.has("bits") { settings.numbers("bits", "BEGIN,END")? } else { [0, 32] };
    if begin > end || end > 32 {
        return Err(err!(InvalidArgument, "reference sort: bits {begin} to {end} are outside the keys"));
    }
    Ok(begin..end)
}

/// Returns the wanted values: those of input `at`, words or rows of them, at these places.
pub(super) fn moved_values(call: &OpCall, at: usize, places: &[usize]) -> Result<Wanted> {
    let shape = output_shape(call, 1);
    let words: usize = shape.iter().skip(1).product();
    by_input!(call, at, [f32, i32, u32], V => {
        let values = input::<V>(call, at)?;
        if shape.len() < 2 {
            return moved(call, values, places);
        }
        let rows: Vec<&[V]> = places.iter().map(|&i| &values[i * words..(i + 1) * words]).collect();
        Wanted::exact(&shape, rows.concat())
    })
}

/// Returns the wanted contents of an operand whose first elements come from `places`. In place, the others stay.
fn moved<T: Element>(call: &OpCall, x: &[T], places: &[usize]) -> Result<Wanted>
where
    HostData: From<Vec<T>>,
{
    let behind = if settings(call)?.has("in-place") { &x[places.len()..] } else { &[] };
    let all: Vec<T> = places.iter().map(|&i| x[i]).chain(behind.iter().copied()).collect();
    Wanted::exact(&[all.len()], all)
}

/// Returns the positions of the keys in sorted order. Keys that agree in
/// `bits` of their numbers keep their order. The number of a key is its place in the order of its type, from
/// 0 on; every NaN has the largest number, ascending and descending.
///
/// Elements of bf16 all have the number 0.
pub fn sort_positions<T: Element>(keys: &[T], descending: bool, bits: Range<u32>) -> Vec<usize> {
    let width = bits.end - bits.start;
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    // A shift by all bits is left to an empty mask.
    let digits = |key: &T| (number(*key, descending) >> bits.start.min(63)) & mask;
    let mut positions: Vec<usize> = (0..keys.len()).collect();
    positions.sort_by_key(|&i| digits(&keys[i]));
    positions
}

/// The unsigned number that stands for a key.
pub(super) fn number<T: Element>(key: T, descending: bool) -> u64 {
    let bytes = bytemuck::bytes_of(&key);
    let word = |at: usize| u64::from(u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    let short = || u64::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
    let half = 1 << 31;
    let all = u64::from(u32::MAX);
    let (ascending, last) = match T::DTYPE {
        DType::U32 => (word(0), all),
        DType::I32 => (word(0) ^ half, all),
        DType::F32 if f32::from_bits(word(0) as u32).is_nan() => return all,
        // Positive floats have ordered bits; those of negative ones are ordered the other way.
        DType::F32 => (if word(0) < half { word(0) + half } else { all - word(0) }, all),
        DType::F16 if f16::from_bits(short() as u16).is_nan() => return 0xffff,
        DType::F16 => (if short() < 0x8000 { short() + 0x8000 } else { 0xffff - short() }, 0xffff),
        DType::U8 => (u64::from(bytes[0]), 0xff),
        DType::I8 => (u64::from(bytes[0] ^ 0x80), 0xff),
        DType::U64 => (bytemuck::pod_read_unaligned(bytes), u64::MAX),
        _ => return 0,
    };
    if descending { last - ascending } else { ascending }
}

fn judge_argsort(call: &OpCall) -> Result<Vec<Wanted>> {
    let (descending, bits) = (settings(call)?.has("descending"), bits_asked(call)?);
    by_input!(call, 0, [f32, i32, u32, f16, u8, i8], T => {
        let keys = input::<T>(call, 0)?;
        let places = sort_positions(&keys[..there(call, keys.len())?], descending, bits);
        let places = places.into_iter().map(|i| i as u32).collect::<Vec<_>>();
        Ok(vec![Wanted::exact(&output_shape(call, 0), places)?])
    })
}

fn judge_merge_sort(call: &OpCall) -> Result<Vec<Wanted>> {
    if descriptor::<MergeSort>(call)?.is_custom() {
        return Err(err!(Unsupported, "reference: there is none for a comparison in WGSL"));
    }
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let (keys, settings) = (input::<T>(call, 0)?, settings(call)?);
        let keys = &keys[..there(call, keys.len())?];
        let places = sort_positions(keys, settings.has("descending"), 0..8 * size_of::<T>() as u32);
        let sorted: Vec<T> = places.iter().map(|&i| keys[i]).collect();
        let mut all = vec![Wanted::exact(&[sorted.len()], sorted)?];
        if call.inputs().count() > 1 + usize::from(settings.array("length").is_some()) {
            all.push(moved_values(call, 1, &places)?);
        }
        Ok(all)
    })
}

/// Sorts positions by `less` of their keys, stably, by insertion: some permutation whatever `less` is.
pub fn merge_sort_positions<T: Copy>(keys: &[T], less: impl Fn(T, T) -> bool) -> Vec<usize> {
    let mut sorted: Vec<usize> = Vec::with_capacity(keys.len());
    for i in 0..keys.len() {
        let place = sorted.partition_point(|&other| !less(keys[i], keys[other]));
        sorted.insert(place, i);
    }
    sorted
}

fn judge_segmented_sort(call: &OpCall) -> Result<Vec<Wanted>> {
    let (settings, offsets) = (settings(call)?, input::<u32>(call, 1)?);
    by_input!(call, 0, [f32, i32, u32], T => {
        let keys = input::<T>(call, 0)?;
        let there = there(call, keys.len())?;
        let places = segmented_sort_positions(&keys[..there], offsets, settings.has("descending"));
        let mut all = vec![moved(call, keys, &places)?];
        if call.inputs().count() > 2 + usize::from(settings.array("length").is_some()) {
            all.push(moved_values(call, 2, &places)?);
        }
        Ok(all)
    })
}

/// Returns the positions of the keys in sorted order, segment by segment. Each offset below the number of keys begins a
/// segment, in any order; so does key 0.
pub fn segmented_sort_positions<T: Element>(keys: &[T], offsets: &[u32], descending: bool) -> Vec<usize> {
    let mut segment = vec![0; keys.len()];
    for &offset in offsets {
        if let Some(head) = segment.get_mut(offset as usize) {
            *head = 1;
        }
    }
    for i in 1..segment.len() {
        segment[i] += segment[i - 1];
    }
    let mut places = sort_positions(keys, descending, 0..8 * size_of::<T>() as u32);
    places.sort_by_key(|&i| segment[i]);
    places
}

fn judge_nth_element(call: &OpCall) -> Result<Vec<Wanted>> {
    let (rank, largest) = (option::<usize>(call, "n")?, settings(call)?.has("largest"));
    by_input!(call, 0, [f32, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let x = &x[..there(call, x.len())?];
        let found = nth_element(x, rank.min(x.len().saturating_sub(1)), largest);
        // Of nothing: NaN, or the integer that comes first.
        let first = if largest { f64::INFINITY } else { f64::NEG_INFINITY };
        let none = T::from_f64(if T::DTYPE.is_float() { f64::NAN } else { first });
        Ok(vec![Wanted::exact(&[], vec![found.unwrap_or(none)])?])
    })
}

/// Returns the element at a rank of the sorted input, from 0, counted from the smallest or the largest; `None` if there
/// is no such rank. A NaN has the standard bits.
pub fn nth_element<T: Number>(input: &[T], rank: usize, largest: bool) -> Option<T> {
    let at = *sort_positions(input, largest, 0..32).get(rank)?;
    Some(if input[at].to_f64().is_nan() { T::from_f64(f64::NAN) } else { input[at] })
}

fn judge_quantile(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, x) = (descriptor::<Quantile>(call)?, input(call, 0)?);
    let x = &x[..there(call, x.len())?];
    let (want, bound) = (quantile(op, x), quantile_bound(op, x));
    Ok(vec![Wanted::rounded(DType::F32, &[want.len()], &want, &bound)?])
}

/// The neighbours of each quantile, and its distance from the first; NaN of no elements.
fn neighbours(op: &Quantile, x: &[f32]) -> Vec<[f64; 3]> {
    let sorted: Vec<f64> = sort_positions(x, false, 0..32).into_iter().map(|i| f64::from(x[i])).collect();
    let of = |(rank, share): (usize, f32)| {
        let at = |rank: usize| sorted.get(rank).or(sorted.last()).copied().unwrap_or(f64::NAN);
        [at(rank), at(rank + 1), share.into()]
    };
    op.ranks(x.len()).map(of).collect()
}

/// Returns the quantiles in `f64`, not rounded. NaN counts as the largest number.
pub fn quantile(op: &Quantile, x: &[f32]) -> Vec<f64> {
    let of = |[below, above, share]: [f64; 3]| match share {
        0.0 => below,
        _ if below == above => below,
        _ => (1.0 - share) * below + share * above,
    };
    neighbours(op, x).into_iter().map(of).collect()
}

/// Bounds the error of each quantile in f32.
pub fn quantile_bound(op: &Quantile, x: &[f32]) -> Vec<f64> {
    let of = |[below, above, share]: [f64; 3]| match share {
        0.0 => 0.0,
        _ if below == above => 0.0,
        _ => 2f64.powi(-22) * (below.abs() + above.abs()) + 4.0 * LEAST_NORMAL,
    };
    neighbours(op, x).into_iter().map(of).collect()
}

fn judge_top_k(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_top_k_rows(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_is_sorted(call: &OpCall) -> Result<Vec<Wanted>> {
    let descending = settings(call)?.has("descending");
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let sorted = is_sorted(&x[..there(call, x.len())?], descending);
        Ok(vec![Wanted::exact(&[], vec![u32::from(sorted)])?])
    })
}

/// Returns whether no element belongs before the one before it. Floats are compared by value; NaN comes last either
/// way.
pub fn is_sorted<T: Number>(input: &[T], descending: bool) -> bool {
    let is_nan = |x: T| x.to_f64().is_nan();
    input.is_sorted_by(|&x, &y| match descending {
        true => is_nan(y) || !is_nan(x) && order(y, x).is_le(),
        false => order(x, y).is_le(),
    })
}

#[cfg(test)]
#[path = "tests/sort.rs"]
mod tests;
