//! Sample sort.

use super::rank::Rank;
use super::schedule::part;
use super::transport::{Exchange, Transport};
use crate::element::Element;
use crate::error::{Result, err, make_room};
use crate::gpu::{Buffer, Slice};
use crate::plan::Plannable;
use crate::primitives::{Gather, Merge, RadixSort};
use crate::program::{Op, When};
use crate::stream::SortKey;

/// Samples of each rank, if shards are equally long.
const SAMPLES: usize = 4096;

/// A place in the sorted array of all ranks: elements are ordered by key, then by rank, then by their place there. Equal
/// keys can therefore be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    key: u64,
    rank: usize,
    at: usize,
}

impl<L: Transport> Rank<L> {
    /// Sorts a sharded array: shard after shard holds the keys in order. The bits are those of [`RadixSort`] on one
    /// device. Shards of the result have nearly equal lengths, whatever those of the input and however often a key
    /// occurs: they differ from the mean by at most 1/4096 of all keys.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use std::time::Duration;
    /// use tilework::{prelude::*, shard};
    ///
    /// let gpus = vec![Gpu::new()?; 2];
    /// let sorted = shard::run(&gpus, Duration::from_secs(10), |rank| {
    ///     let keys: &[f32] = if rank.index() == 0 { &[2.0, -1.0, 2.0, 5.0] } else { &[2.0, 0.0] };
    ///     rank.sort(&rank.gpu().upload(keys)?, false)?.read()
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
    pub fn sort<'a, T: SortKey>(&self, shard: impl Into<Slice<'a, T>>, descending: bool) -> Result<Buffer<T>>
    where
        RadixSort: Op<T>,
        Merge: Op<T>,
        Gather: Op<T>,
    {
        let (gpu, shard) = (self.gpu(), shard.into());
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
        self.exchange_runs(sorted, &cuts, descending)
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
        places.sort_unstable();
        // For each cut, the part of the shard that holds it.
        let mut wanted = Vec::new();
        for j in 1..size {
            let splitter = match part(total, size, j).start / stride {
                0 => None,
                before => places.get(before - 1).copied(),
            };
            let before = |key: u64, at: usize| splitter.is_some_and(|s| Place { key, rank: own, at } <= s);
            let known = samples.iter().enumerate();
            let first =
                known.take_while(|(i, key)| before(order(**key), (i + 1) * stride - 1)).count() * stride;
            let last = n.min(first + stride);
            let unknown = splitter.is_some() && stride > 1 && first < last;
            let reading = unknown.then(|| sorted.slice(first..last)?.start_read()).transpose()?;
            wanted.push((splitter, first, reading));
        }
        let mut cuts = vec![0];
        for (splitter, first, reading) in wanted {
            let keys = reading.map_or_else(|| Ok(Vec::new()), crate::gpu::Readback::wait)?;
            let before = |(i, key): (usize, &T)| {
                splitter.is_some_and(|s| Place { key: order(*key), rank: own, at: first + i } <= s)
            };
            let within = keys.iter().enumerate().take_while(|&k| before(k)).count();
            // An element that is its own sample.
            let cut = if stride == 1 { first } else { first + within };
            cuts.push(cut);
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

    /// Sends each rank its run, and merges the runs that come.
    fn exchange_runs<T: Element>(
        &self,
        sorted: Buffer<T>,
        cuts: &[usize],
        descending: bool,
    ) -> Result<Buffer<T>>
    where
        Merge: Op<T>,
    {
        let (gpu, own) = (self.gpu(), self.index());
        let counts: Vec<usize> = cuts.windows(2).map(|w| w[1] - w[0]).collect();
        let taken = self.exchange_counts(&counts)?;
        let mut runs = Vec::new();
        for (rank, count) in taken.iter().enumerate() {
            runs.push(if rank == own { gpu.alloc::<T>(*count)? } else { self.alloc::<T>(*count)? });
        }
        let mut exchange = Exchange::default();
        for s in 1..self.size() {
            let (to, from) = ((own + s) % self.size(), (own + self.size() - s) % self.size());
            if counts[to] > 0 {
                exchange.sends.push((vec![to], sorted.slice(cuts[to]..cuts[to + 1])?));
            }
            if taken[from] > 0 {
                exchange.receives.push((from, Slice::from(&runs[from])));
            }
        }
        let started = self.begin(exchange)?;
        let mut rec = gpu.recorder();
        rec.copy(sorted.slice(cuts[own]..cuts[own + 1])?, &runs[own])?;
        rec.submit()?;
        self.finish(started)?;
        drop(sorted);
        // Neighbours merge, so that equal keys keep their order.
        while runs.len() > 1 {
            let mut merged = Vec::new();
            let mut rest = runs.into_iter();
            while let Some(a) = rest.next() {
                let Some(b) = rest.next() else {
                    merged.push(a);
                    break;
                };
                if a.is_empty() || b.is_empty() {
                    merged.push(if a.is_empty() { b } else { a });
                    continue;
                }
                let output = gpu.alloc::<T>(a.len() + b.len())?;
                let merge =
                    Merge::new(a.len(), b.len()).when(descending, Merge::descending).plan::<T>(gpu)?;
                let mut rec = gpu.recorder();
                merge.record(&mut rec, &a, &b, &output)?;
                rec.submit()?;
                merged.push(output);
            }
            runs = merged;
        }
        runs.pop().ok_or_else(|| err!(Shape, "sharded sort: no runs"))
    }
}
