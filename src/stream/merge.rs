//! Merges sorted runs on the host, in parallel.

use super::pipeline::Cancel;
use crate::primitives::RadixSort;
use crate::program::prelude::*;
use std::thread;

/// Keys that [`Streamed::sort`](super::Streamed::sort) orders.
pub trait SortKey: Element {
    /// Returns the key's rank in ascending order: the order of [`RadixSort`], in which every NaN is
    /// last.
    fn rank(self) -> u64;
}

impl SortKey for u32 {
    fn rank(self) -> u64 {
        u64::from(self)
    }
}

impl SortKey for i32 {
    fn rank(self) -> u64 {
        u64::from(self.cast_unsigned() ^ (1 << 31))
    }
}

impl SortKey for u64 {
    fn rank(self) -> u64 {
        self
    }
}

impl SortKey for f32 {
    fn rank(self) -> u64 {
        let bits = self.to_bits();
        // Positive floats have ordered bits; negative ones are in reverse order.
        let flipped = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
        if self.is_nan() { u64::MAX } else { u64::from(flipped) }
    }
}

/// Minimum elements per thread.
const PART: usize = 1 << 16;
/// Samples of each run per part.
const SAMPLES: usize = 16;

fn rank<T: SortKey>(key: T, descending: bool) -> u64 {
    let rank = key.rank();
    // NaN comes last in both orders. No other f32 has a rank above 32 bits.
    let is_nan = T::DTYPE.is_float() && rank == u64::MAX;
    if descending && !is_nan { u64::MAX - rank - u64::from(T::DTYPE.is_float()) } else { rank }
}

/// Merges `keys` and their values, if any, into `keys_out` and `values_out`. Each `run` elements are sorted. Equal keys
/// keep their order. If `cancel` is cancelled, the outputs are incomplete.
pub(super) fn merge<T: SortKey>(
    (keys, values): (&[T], &[u32]), (keys_out, values_out): (&mut [T], &mut [u32]), run: usize, descending: bool,
    cancel: &Cancel,
) -> Result<()> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let parts = threads.min(keys.len() / PART).max(1);
    merge_in(parts, (keys, values), (keys_out, values_out), run, descending, cancel)
}

fn merge_in<T: SortKey>(
    parts: usize, (keys, values): (&[T], &[u32]), (mut keys_out, mut values_out): (&mut [T], &mut [u32]), run: usize,
    descending: bool, cancel: &Cancel,
) -> Result<()> {
    if keys.len() <= run {
        keys_out.copy_from_slice(keys);
        values_out.copy_from_slice(values);
        return Ok(());
    }
    let cuts = cuts(keys, run, parts, descending)?;
    thread::scope(|scope| {
        for pair in cuts.windows(2) {
            let mut spans = with_room(RadixSort::NAME, pair[0].len())?;
            spans.extend(pair[0].iter().copied().zip(pair[1].iter().copied()));
            let tree = filled(RadixSort::NAME, 2 * spans.len().next_power_of_two(), u128::MAX)?;
            let len = spans.iter().map(|(a, b)| b - a).sum();
            let (keys_now, keys_later) = std::mem::take(&mut keys_out).split_at_mut(len);
            let of_values = if values.is_empty() { 0 } else { len };
            let (values_now, values_later) = std::mem::take(&mut values_out).split_at_mut(of_values);
            (keys_out, values_out) = (keys_later, values_later);
            let work = move || tournament((keys, values), (spans, tree), (keys_now, values_now), descending, cancel);
            if parts == 1 {
                work();
            } else {
                let thread = thread::Builder::new().name("tilework stream merge".into());
                thread
                    .spawn_scoped(scope, work)
                    .map_err(|e| err!(Io, "sort: the system gives no thread to merge with: {e}"))?;
            }
        }
        Ok(())
    })
}

/// Returns the begin of each part in each run, and the end of the last part: `parts + 1` lists of positions.
fn cuts<T: SortKey>(keys: &[T], run: usize, parts: usize, descending: bool) -> Result<Vec<Vec<usize>>> {
    let mut runs = with_room(RadixSort::NAME, keys.len().div_ceil(run))?;
    runs.extend((0..keys.len()).step_by(run).map(|a| (a, a.saturating_add(run).min(keys.len()))));
    // The position distinguishes equal keys, so that a cut may fall between them.
    let place = |i: usize| (rank(keys[i], descending), i);
    let mut samples = Vec::new();
    for &(a, b) in &runs {
        let count = (parts * SAMPLES).min(b - a);
        make_room(RadixSort::NAME, &mut samples, count)?;
        samples.extend((0..count).map(|s| place(a + s * (b - a) / count)));
    }
    samples.sort_unstable();
    let mut cuts = Vec::new();
    for part in 0..=parts {
        let splitter = samples.get(part * samples.len() / parts);
        let mut places = with_room(RadixSort::NAME, runs.len())?;
        places.extend(runs.iter().map(|&(a, b)| match splitter {
            _ if part == 0 => a,
            Some(splitter) => partition_point(a, b, |at| place(at) < *splitter),
            None => b,
        }));
        cuts.push(places);
    }
    Ok(cuts)
}

/// Returns the first index of `low..high` that is not `before` the cut.
fn partition_point(mut low: usize, mut high: usize, before: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Merges spans of several runs by a tournament tree: each node holds the smallest head of the runs below it. `tree`
/// starts as all `u128::MAX`.
fn tournament<T: SortKey>(
    (keys, values): (&[T], &[u32]), (mut spans, mut tree): (Vec<(usize, usize)>, Vec<u128>),
    (keys_out, values_out): (&mut [T], &mut [u32]), descending: bool, cancel: &Cancel,
) {
    /// Elements between checks of the token.
    const LOOK: usize = 1 << 16;
    let leaves = tree.len() / 2;
    // The rank, then the run's number, so that earlier runs win ties. A finished run compares larger than any key.
    let head = |run: usize, (a, b): (usize, usize)| {
        if a < b { u128::from(rank(keys[a], descending)) << 32 | run as u128 } else { u128::MAX }
    };
    for (run, span) in spans.iter().enumerate() {
        tree[leaves + run] = head(run, *span);
    }
    for node in (1..leaves).rev() {
        tree[node] = tree[2 * node].min(tree[2 * node + 1]);
    }
    for (at, key) in keys_out.iter_mut().enumerate() {
        if at % LOOK == 0 && cancel.is_cancelled() {
            return;
        }
        let run = (tree[1] & u128::from(u32::MAX)) as usize;
        let from = spans[run].0;
        *key = keys[from];
        if let Some(value) = values_out.get_mut(at) {
            *value = values[from];
        }
        spans[run].0 += 1;
        let mut node = leaves + run;
        tree[node] = head(run, spans[run]);
        while node > 1 {
            node /= 2;
            tree[node] = tree[2 * node].min(tree[2 * node + 1]);
        }
    }
}

#[cfg(test)]
mod tests;
