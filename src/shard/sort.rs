//! Sample sort.

use super::rank::Rank;
use super::schedule::part;
use super::transport::{Exchange, Transport};
use crate::element::Element;
use crate::error::{Result, err, make_room};
use crate::gpu::{Buffer, Slice};
use crate::plan::Plannable;
use crate::primitives::{Gather, Merge, RadixSort, merge};
use crate::program::{Op, When};
use crate::stream::SortKey;
use std::ops::Range;

/// Samples of each rank, if shards are equally long.
const SAMPLES: usize = 4096;

/// A place in the sorted array of all ranks: elements are ordered by key, then by rank, then by their place there.
/// Equal keys can therefore be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    key: u64,
    rank: usize,
    at: usize,
}

impl<L: Transport> Rank<L> {
    /// Sorts a sharded array in ascending order: shard after shard holds the keys in order. The bits are those of
    /// [`RadixSort`] on one device. Shards of the result have nearly equal lengths, whatever those of the input and
    /// however often a key occurs: they differ from the mean by at most 1/4096 of all keys.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use std::time::Duration;
    /// use tilework::{prelude::*, shard};
    ///
    /// let gpus = vec![Gpu::new()?; 2];
    /// let sorted = shard::run(&gpus, Duration::from_secs(10), |rank| {
    ///     let keys: &[f32] = if rank.index() == 0 { &[2.0, -1.0, 2.0, 5.0] } else { &[2.0, 0.0] };
    ///     rank.sort(&rank.gpu().upload(keys)?)?.read()
    /// })?;
    /// assert_eq!(sorted, [vec![-1.0, 0.0, 2.0], vec![2.0, 2.0, 5.0]]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Cost
    /// A radix sort of the shard, an all-to-all of the keys that belong to other ranks, and a merge of the runs in
    /// `log2(ranks)` passes. Memory: three times the shard, and the scratch of the sort.
    ///
    /// # Errors
    /// See [`Rank`]; those of [`RadixSort`], of which [`TooLarge`](crate::ErrorKind::TooLarge) asks for more ranks.
    ///
    /// # Algorithm
    /// Sample sort with regular samples, H. Shi and J. Schaeffer, 1992.
    pub fn sort<'a, T: SortKey>(&self, shard: impl Into<Slice<'a, T>>) -> Result<Buffer<T>>
    where
        RadixSort: Op<T>,
        Merge: Op<T>,
        Gather: Op<T>,
    {
        self.sort_shards(shard.into(), false)
    }

    /// As [`sort`](Self::sort), in descending order; NaN is last.
    ///
    /// # Errors
    /// See [`sort`](Self::sort).
    pub fn sort_descending<'a, T: SortKey>(&self, shard: impl Into<Slice<'a, T>>) -> Result<Buffer<T>>
    where
        RadixSort: Op<T>,
        Merge: Op<T>,
        Gather: Op<T>,
    {
        self.sort_shards(shard.into(), true)
    }

    fn sort_shards<T: SortKey>(&self, shard: Slice<'_, T>, descending: bool) -> Result<Buffer<T>>
    where
        RadixSort: Op<T>,
        Merge: Op<T>,
        Gather: Op<T>,
    {
        let gpu = self.gpu();
        let n = shard.len();
        let sorted = self.alloc::<T>(n)?;
        let mut rec = gpu.recorder();
        let plan = RadixSort::new(n).when(descending, RadixSort::descending).plan::<T>(gpu)?;
        plan.record(&mut rec, shard, &sorted)?;
        rec.submit()?;
        if self.size() == 1 {
            return Ok(sorted);
        }
        let cuts = self.cuts(&sorted, descending)?;
        self.exchange_runs(&sorted, &cuts, descending)
    }

    /// Returns where this rank's sorted shard is cut: rank `j` gets the elements from cut `j` to cut `j + 1`.
    fn cuts<T: SortKey>(&self, sorted: &Buffer<T>, descending: bool) -> Result<Vec<usize>>
    where
        Gather: Op<T>,
    {
        let (own, size, n) = (self.index(), self.size(), sorted.len());
        let order = |key: T| match key.rank() {
            // NaN is last either way.
            nan @ u64::MAX => nan,
            rank if descending => u64::MAX - 1 - rank,
            rank => rank,
        };
        let lens = self.gather_equal(&[n as u64, u64::from(descending)])?;
        if lens.chunks_exact(2).any(|c| c[1] != u64::from(descending)) {
            return Err(err!(InvalidArgument, "sharded sort: some ranks sort ascending, others descending"));
        }
        let total = lens.chunks_exact(2).try_fold(0u64, |sum, c| sum.checked_add(c[0]));
        let total = total.ok_or_else(|| err!(TooLarge, "sharded sort: more keys than 2^64"))? as usize;
        // Each sample stands for itself and the elements before it.
        let stride = total.div_ceil(size * SAMPLES).max(1);
        let samples = self.every(sorted, stride)?;
        let (all, begins) = self.all_gather(&samples)?;
        let mut places = Vec::new();
        make_room("sharded sort: samples", &mut places, all.len())?;
        for rank in 0..size {
            let keys = all[begins[rank]..begins[rank + 1]].iter().enumerate();
            places.extend(keys.map(|(i, key)| Place { key: order(*key), rank, at: (i + 1) * stride - 1 }));
        }
        // A stable sort finds the runs of the ranks.
        places.sort();
        let splitters: Vec<Option<Place>> = (1..size)
            .map(|cut| match part(total, size, cut).start / stride {
                0 => None,
                before => places.get(before - 1).copied(),
            })
            .collect();
        // For each cut, the elements before the last sample that is surely before it, and the window that holds it.
        let mut windows = Vec::new();
        for splitter in &splitters {
            let place = |i: usize| Place { key: order(samples[i]), rank: own, at: (i + 1) * stride - 1 };
            let before = splitter.map_or(0, |s| first_that_is_not(samples.len(), |i| place(i) <= s));
            let first = before * stride;
            // An element that is its own sample is known.
            let len = if splitter.is_some() && stride > 1 { n.min(first + stride) - first } else { 0 };
            windows.push(first..first + len);
        }
        let keys = self.windows(sorted, &windows)?;
        let mut rest = &keys[..];
        let mut cuts = vec![0];
        for (splitter, window) in splitters.iter().zip(windows) {
            let (keys, others) = rest.split_at(window.len());
            rest = others;
            let place = |i: usize| Place { key: order(keys[i]), rank: own, at: window.start + i };
            let within = splitter.map_or(0, |s| first_that_is_not(keys.len(), |i| place(i) <= s));
            cuts.push(window.start + within);
        }
        cuts.push(n);
        Ok(cuts)
    }

    /// Reads every `stride`-th element, the last of each run of that length.
    fn every<T: Element>(&self, sorted: &Buffer<T>, stride: usize) -> Result<Vec<T>>
    where
        Gather: Op<T>,
    {
        if stride == 1 {
            return sorted.read();
        }
        let gpu = self.gpu();
        let indices: Vec<u32> = (1..=sorted.len() / stride).map(|i| (i * stride - 1) as u32).collect();
        let (samples, places) = (gpu.alloc::<T>(indices.len())?, gpu.upload(&indices)?);
        let mut rec = gpu.recorder();
        let plan = Gather::new([sorted.len(), 1], indices.len()).plan::<T>(gpu)?;
        plan.record(&mut rec, sorted, &places, &samples)?;
        rec.submit()?;
        samples.read()
    }

    /// Reads ranges of a shard, one after another, at once.
    fn windows<T: Element>(&self, sorted: &Buffer<T>, windows: &[Range<usize>]) -> Result<Vec<T>> {
        let len = windows.iter().map(Range::len).sum();
        if len == 0 {
            return Ok(Vec::new());
        }
        let (all, mut rec) = (self.gpu().alloc::<T>(len)?, self.gpu().recorder());
        let mut begin = 0;
        for window in windows {
            rec.copy(sorted.slice(window.clone())?, all.slice(begin..begin + window.len())?)?;
            begin += window.len();
        }
        rec.submit()?;
        all.read()
    }

    /// Sends each rank its run, and merges the runs that come.
    fn exchange_runs<T: Element>(
        &self,
        sorted: &Buffer<T>,
        cuts: &[usize],
        descending: bool,
    ) -> Result<Buffer<T>>
    where
        Merge: Op<T>,
    {
        let (own, size) = (self.index(), self.size());
        let counts: Vec<usize> = cuts.windows(2).map(|w| w[1] - w[0]).collect();
        let taken = self.exchange_counts(&counts)?;
        let runs = taken.iter().enumerate().map(|(from, count)| match from == own {
            // The shard's own run stays where it is.
            true => Ok(SortedRun { buffer: sorted.clone(), range: cuts[own]..cuts[own + 1] }),
            false => Ok(SortedRun { buffer: self.alloc::<T>(*count)?, range: 0..*count }),
        });
        let runs = runs.collect::<Result<Vec<_>>>()?;
        let mut exchange = Exchange::default();
        for s in 1..size {
            let (to, from) = ((own + s) % size, (own + size - s) % size);
            if counts[to] > 0 {
                exchange.sends.push((vec![to], sorted.slice(cuts[to]..cuts[to + 1])?));
            }
            if taken[from] > 0 {
                exchange.receives.push((from, Slice::from(&runs[from].buffer)));
            }
        }
        let started = self.begin(exchange)?;
        self.finish(started)?;
        self.merge_runs(runs, descending)
    }

    /// Merges runs. Neighbours merge, so that equal keys keep their order.
    fn merge_runs<T: Element>(&self, mut runs: Vec<SortedRun<T>>, descending: bool) -> Result<Buffer<T>> {
        let gpu = self.gpu();
        let mut rec = gpu.recorder();
        runs.retain(|run| !run.range.is_empty());
        while runs.len() > 1 {
            let mut merged = Vec::new();
            let mut rest = runs.into_iter();
            while let Some(a) = rest.next() {
                let Some(b) = rest.next() else {
                    merged.push(a);
                    break;
                };
                let len = a.range.len() + b.range.len();
                let buffer = gpu.alloc::<T>(len)?;
                let lens = [a.buffer.len(), b.buffer.len(), len];
                let ranges = [&a.range, &b.range];
                let program = merge::part(T::DTYPE, lens, ranges, descending, gpu.profile())?;
                let operands = [&a.buffer, &b.buffer, &buffer].map(|x| Slice::from(x).untyped());
                gpu.prepare_lowered(program)?.record(&mut rec, &operands)?;
                merged.push(SortedRun { buffer, range: 0..len });
            }
            runs = merged;
        }
        let Some(SortedRun { buffer, range }) = runs.pop() else { return gpu.alloc(0) };
        if range.len() == buffer.len() {
            rec.submit()?;
            return Ok(buffer);
        }
        let whole = gpu.alloc::<T>(range.len())?;
        rec.copy(buffer.slice(range)?, &whole)?;
        rec.submit()?;
        Ok(whole)
    }
}

/// Sorted keys in a range of a buffer.
struct SortedRun<T: Element> {
    buffer: Buffer<T>,
    range: Range<usize>,
}

/// The first of `n` numbers for which a predicate does not hold that holds for all before it; else `n`.
fn first_that_is_not(n: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
