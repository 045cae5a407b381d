//! Sample sort.

use super::rank::{Rank, ranges};
use super::schedule::part;
use super::transport::{Exchange, Transport};
use crate::gpu::{Buffer, Readback, Recorder, Slice};
use crate::plan::Plannable;
use crate::primitives::{Gather, Merge, RadixSort, merge};
use crate::program::prelude::*;
use crate::stream::SortKey;
use std::ops::Range;

/// Samples of each rank, if shards are equally long.
const SAMPLES: usize = 16384;
/// Bytes of a piece of the exchange, if there are fewer than the maximum of pieces.
const PIECE_BYTES: usize = 32 << 20;
const MAX_PIECES: usize = 8;

/// A place in the sorted array of all ranks: elements are ordered by key, then by rank, then by their place there.
/// Equal keys can therefore be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    key: u64,
    rank: usize,
    at: usize,
}

/// The samples of all ranks, each in order.
struct Samples<'a, T, F: Fn(T, usize, usize) -> Place> {
    ranks: Vec<&'a [T]>,
    /// The place of a sample, of a rank.
    place: F,
}

impl<T: Copy, F: Fn(T, usize, usize) -> Place> Samples<'_, T, F> {
    /// The samples of a rank up to a place.
    fn up_to(&self, rank: usize, place: Place) -> usize {
        let samples = self.ranks[rank];
        first_that_is_not(samples.len(), |i| (self.place)(samples[i], rank, i) <= place)
    }

    /// The place that has this many samples up to it; `None` for 0, and the last if there are fewer.
    fn place_of(&self, count: usize) -> Option<Place> {
        let all: usize = self.ranks.iter().map(|samples| samples.len()).sum();
        let count = count.min(all);
        (0..self.ranks.len()).find_map(|rank| {
            let samples = self.ranks[rank];
            let place = |i: usize| (self.place)(samples[i], rank, i);
            let up_to = |i: usize| (0..self.ranks.len()).map(|r| self.up_to(r, place(i))).sum::<usize>();
            let at = first_that_is_not(samples.len(), |i| up_to(i) < count);
            (at < samples.len() && up_to(at) == count).then(|| place(at))
        })
    }
}

impl<L: Transport> Rank<L> {
    /// Sorts a sharded array in ascending order: shard after shard holds the keys in order. The bits are those of
    /// [`RadixSort`] on one device. Shards of the result have nearly equal lengths, whatever those of the input and
    /// however often a key occurs: they differ from the mean by at most 1/16384 of all keys.
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
    /// A radix sort of the shard, an all-to-all of the keys that belong to other ranks in up to eight pieces, and a
    /// merge of the runs in `log2(ranks)` passes: of a piece while later ones are under way. Memory: three times the
    /// shard, and the scratch of the sort.
    ///
    /// # Errors
    /// See [`Rank`]; those of [`RadixSort`], of which [`TooLarge`](ErrorKind::TooLarge) asks for more ranks.
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
        self.sort_in_pieces(shard, descending, |bytes| (bytes / PIECE_BYTES).clamp(1, MAX_PIECES))
    }

    /// Sorts; an exchange of some bytes has `pieces` pieces.
    fn sort_in_pieces<T: SortKey>(
        &self,
        shard: Slice<'_, T>,
        descending: bool,
        pieces: impl Fn(usize) -> usize,
    ) -> Result<Buffer<T>>
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
        let lens = self.gather_equal(&[n as u64, u64::from(descending)])?;
        if lens.chunks_exact(2).any(|c| c[1] != u64::from(descending)) {
            return Err(err!(InvalidArgument, "sharded sort: some ranks sort ascending, others descending"));
        }
        let lens: Vec<usize> = lens.chunks_exact(2).map(|c| c[0] as usize).collect();
        let total = lens.iter().try_fold(0usize, |sum, len| sum.checked_add(*len));
        let total = total.ok_or_else(|| err!(TooLarge, "sharded sort: more keys than 2^64"))?;
        let pieces = pieces(total.saturating_mul(T::DTYPE.size()) / self.size());
        let cuts = self.cuts(&sorted, &lens, total, self.size() * pieces, descending)?;
        self.exchange_runs(&sorted, &cuts, pieces, descending)
    }

    /// Returns where this rank's sorted shard is cut into `parts`: part `j` of all ranks has the elements from cut `j`
    /// to cut `j + 1`.
    fn cuts<T: SortKey>(
        &self,
        sorted: &Buffer<T>,
        lens: &[usize],
        total: usize,
        parts: usize,
        descending: bool,
    ) -> Result<Vec<usize>>
    where
        Gather: Op<T>,
    {
        let (own, n) = (self.index(), sorted.len());
        let order = |key: T| match key.rank() {
            // NaN is last either way.
            nan @ u64::MAX => nan,
            rank if descending => u64::MAX - 1 - rank,
            rank => rank,
        };
        // Each sample stands for itself and the elements before it.
        let stride = total.div_ceil(self.size() * SAMPLES).max(1);
        let coming = self.every(sorted, stride)?;
        let begins: Vec<Range<usize>> =
            ranges("sharded sort: samples", &lens.iter().map(|len| len / stride).collect::<Vec<_>>())?;
        let samples = coming.wait()?;
        let all = self.gather_parts(&samples, &begins)?;
        let samples = Samples {
            ranks: begins.iter().map(|range| &all[range.clone()]).collect(),
            place: |key, rank, i| Place { key: order(key), rank, at: (i + 1) * stride - 1 },
        };
        let splitters: Vec<Option<Place>> =
            (1..parts).map(|cut| samples.place_of(part(total, parts, cut).start / stride)).collect();
        // For each cut, the elements before the last sample that is surely before it, and the window that holds it.
        let mut windows = Vec::new();
        for splitter in &splitters {
            let before = splitter.map_or(0, |s| samples.up_to(own, s));
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

    /// Starts to read every `stride`-th element, the last of each run of that length.
    fn every<T: Element>(&self, sorted: &Buffer<T>, stride: usize) -> Result<Readback<T>>
    where
        Gather: Op<T>,
    {
        if stride == 1 {
            return sorted.slice(..)?.start_read();
        }
        let gpu = self.gpu();
        let indices: Vec<u32> = (1..=sorted.len() / stride).map(|i| (i * stride - 1) as u32).collect();
        let (samples, places) = (gpu.alloc::<T>(indices.len())?, gpu.upload(&indices)?);
        let mut rec = gpu.recorder();
        let plan = Gather::new([sorted.len(), 1], indices.len()).plan::<T>(gpu)?;
        plan.record(&mut rec, sorted, &places, &samples)?;
        rec.submit()?;
        samples.slice(..)?.start_read()
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

    /// Sends each rank its runs in pieces, and merges the runs of a piece while later ones are under way.
    fn exchange_runs<T: Element>(
        &self,
        sorted: &Buffer<T>,
        cuts: &[usize],
        pieces: usize,
        descending: bool,
    ) -> Result<Buffer<T>>
    where
        Merge: Op<T>,
    {
        let (own, size) = (self.index(), self.size());
        let all: Vec<u64> = self.gather_equal(&cuts.iter().map(|&cut| cut as u64).collect::<Vec<_>>())?;
        let cut = |rank: usize, at: usize| all[rank * cuts.len() + at] as usize;
        // The elements of `from` that `to` gets in a piece.
        let piece_of = |from: usize, to: usize, piece: usize| {
            let at = to * pieces + piece;
            cut(from, at)..cut(from, at + 1)
        };
        let taken = |from: usize| cut(from, (own + 1) * pieces) - cut(from, own * pieces);
        let arrived: Vec<Buffer<T>> = (0..size)
            .map(|from| if from == own { Ok(sorted.clone()) } else { self.alloc(taken(from)) })
            .collect::<Result<_>>()?;
        let whole = self.gpu().alloc::<T>((0..size).map(taken).sum())?;
        // Where a rank's elements lie here.
        let here = |from: usize, piece: usize| {
            let range = piece_of(from, own, piece);
            let before = if from == own { 0 } else { cut(from, own * pieces) };
            range.start - before..range.end - before
        };
        let mut under_way = Vec::new();
        for piece in 0..pieces {
            let mut exchange = Exchange::default();
            for s in 1..size {
                let (to, from) = ((own + s) % size, (own + size - s) % size);
                let (sent, coming) = (piece_of(own, to, piece), here(from, piece));
                if !sent.is_empty() {
                    exchange.sends.push((vec![to], sorted.slice(sent)?));
                }
                if !coming.is_empty() {
                    exchange.receives.push((from, arrived[from].slice(coming)?));
                }
            }
            under_way.push(self.begin(exchange)?);
        }
        arrived.iter().for_each(Buffer::count_as_written);
        let mut begin = 0;
        for (piece, started) in under_way.into_iter().enumerate() {
            let runs =
                (0..size).map(|from| SortedRun { buffer: arrived[from].clone(), range: here(from, piece) });
            let runs: Vec<_> = runs.filter(|run| !run.range.is_empty()).collect();
            let len: usize = runs.iter().map(|run| run.range.len()).sum();
            // Recorded while the piece is under way.
            let merges = self.record_merges(runs, &whole, begin, descending)?;
            self.finish(started)?;
            merges.submit()?;
            begin += len;
        }
        Ok(whole)
    }

    /// Records merges of runs to the places of `whole` from `begin` on. Neighbours merge, so that equal keys keep their
    /// order.
    fn record_merges<T: Element>(
        &self,
        mut runs: Vec<SortedRun<T>>,
        whole: &Buffer<T>,
        begin: usize,
        descending: bool,
    ) -> Result<Recorder> {
        let gpu = self.gpu();
        let mut rec = gpu.recorder();
        while runs.len() > 1 {
            let last = runs.len() == 2;
            let mut merged = Vec::new();
            let mut rest = runs.into_iter();
            while let Some(a) = rest.next() {
                let Some(b) = rest.next() else {
                    merged.push(a);
                    break;
                };
                let len = a.range.len() + b.range.len();
                let (buffer, place) = if last { (whole.clone(), begin) } else { (gpu.alloc(len)?, 0) };
                let lens = [a.buffer.len(), b.buffer.len(), buffer.len()];
                let ranges = [&a.range, &b.range];
                let program = merge::part(T::DTYPE, lens, ranges, place, descending, gpu.profile())?;
                let operands = [&a.buffer, &b.buffer, &buffer].map(|x| Slice::from(x).untyped());
                gpu.prepare_lowered(program)?.record(&mut rec, &operands)?;
                if !last {
                    merged.push(SortedRun { buffer, range: 0..len });
                }
            }
            runs = merged;
        }
        if let Some(SortedRun { buffer, range }) = runs.pop() {
            let place = whole.slice(begin..begin + range.len())?;
            rec.copy(buffer.slice(range)?, place)?;
        }
        Ok(rec)
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

#[cfg(test)]
mod tests;
