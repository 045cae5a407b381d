use super::rank::{Rank, ranges};
use super::schedule::part;
use super::transport::{Exchange, Transport};
use crate::gpu::{Buffer, Readback, Recorder, Slice};
use crate::plan::Plannable;
use crate::primitives::{Merge, RadixSort, merge, sort_samples};
use crate::program::prelude::*;
use crate::stream::SortKey;
use std::ops::Range;

/// Maximum of the samples of a rank.
const SAMPLES: usize = 16384;
/// Bytes of a piece of the exchange, if there are fewer than the maximum of pieces.
const PIECE_BYTES: usize = 32 << 20;
const MAX_PIECES: usize = 7;

/// Numbers that may separate the parts of ranks, and where each lies in the sorted shards.
struct Separators {
    /// In ascending order, each once.
    numbers: Vec<u32>,
    /// Of each rank: for each number the keys before it, and those that do not come after it.
    bounds: Vec<Vec<[u32; 2]>>,
    /// Keys of each rank.
    lens: Vec<usize>,
}

impl Separators {
    /// Keys of all ranks up to a bound of number `i`.
    fn all(&self, i: usize, bound: usize) -> usize {
        self.bounds.iter().map(|of| of[i][bound] as usize).sum()
    }

    /// Where each rank's sorted shard is cut so that together they have `target` keys before the cut, or as nearly as
    /// the numbers allow. Equal keys are cut by rank.
    fn cut(&self, target: usize) -> Vec<usize> {
        let i = first_that_is_not(self.numbers.len(), |i| self.all(i, 1) < target);
        let at = |i: usize, bound: usize| self.bounds.iter().map(|of| of[i][bound] as usize).collect();
        let below = if i == 0 { 0 } else { self.all(i - 1, 1) };
        let above = if i == self.numbers.len() { self.lens.iter().sum() } else { self.all(i, 0) };
        if above > target {
            return match (target - below <= above - target, i) {
                (true, 0) => vec![0; self.lens.len()],
                (true, _) => at(i - 1, 1),
                (false, i) if i == self.numbers.len() => self.lens.clone(),
                (false, i) => at(i, 0),
            };
        }
        if i == self.numbers.len() {
            return self.lens.clone();
        }
        let mut left = target - above;
        let take = |of: &Vec<[u32; 2]>| {
            let [before, up_to] = of[i].map(|bound| bound as usize);
            let equal = left.min(up_to - before);
            left -= equal;
            before + equal
        };
        self.bounds.iter().map(take).collect()
    }
}

fn number<T: SortKey>(key: T, descending: bool) -> u32 {
    match u32::try_from(key.rank()) {
        Ok(rank) if descending => !rank,
        Ok(rank) => rank,
        // Every NaN is last.
        Err(_) => u32::MAX,
    }
}

impl<L: Transport> Rank<L> {
    /// Sorts a sharded array in ascending order: shard after shard holds the keys in order. The bits are those of
    /// [`RadixSort`] on one device. Shards of the result have nearly equal lengths, whatever those of the input and
    /// however often a key occurs: they differ from the mean by less than 1/1024 of all keys, except with a probability
    /// below 1 in a million.
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
    /// A radix sort of the shard, an all-to-all of the keys that belong to other ranks in up to seven pieces, and a
    /// merge of the runs in `log2(ranks)` passes: of a piece while later ones are under way. Memory: three times the
    /// shard, and the scratch of the sort.
    ///
    /// # Errors
    /// See [`Rank`]; those of [`RadixSort`], of which [`TooLarge`](ErrorKind::TooLarge) asks for more ranks.
    ///
    /// # Algorithm
    /// Sample sort, W. D. Frazer and A. C. McKellar, 1970. Samples are drawn before the shard is sorted; the keys that
    /// may separate two ranks are then counted in the sorted shards, and the best is taken.
    pub fn sort<'a, T: SortKey>(&self, shard: impl Into<Slice<'a, T>>) -> Result<Buffer<T>>
    where
        RadixSort: Op<T>,
        Merge: Op<T>,
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
    {
        self.sort_shards(shard.into(), true)
    }

    fn sort_shards<T: SortKey>(&self, shard: Slice<'_, T>, descending: bool) -> Result<Buffer<T>>
    where
        RadixSort: Op<T>,
        Merge: Op<T>,
    {
        self.sort_in_pieces(shard, descending, |bytes| (bytes / PIECE_BYTES).clamp(1, MAX_PIECES))
    }

    /// Sorts; an exchange of some bytes has `pieces` pieces.
    fn sort_in_pieces<T: SortKey>(
        &self, shard: Slice<'_, T>, descending: bool, pieces: impl Fn(usize) -> usize,
    ) -> Result<Buffer<T>>
    where
        RadixSort: Op<T>,
        Merge: Op<T>,
    {
        let gpu = self.gpu();
        let n = shard.len();
        // Samples are on their way to the host while the device sorts.
        let drawn = if self.size() == 1 { None } else { Some(self.draw(shard)?) };
        let sorted = self.alloc::<T>(n)?;
        let mut rec = gpu.recorder();
        let plan = RadixSort::new(n).when(descending, RadixSort::descending).plan::<T>(gpu)?;
        plan.record(&mut rec, shard, &sorted)?;
        rec.submit()?;
        let Some(drawn) = drawn else { return Ok(sorted) };
        let lens = self.gather_equal(&[n as u64, u64::from(descending)])?;
        if lens.chunks_exact(2).any(|c| c[1] != u64::from(descending)) {
            return Err(err!(InvalidArgument, "sharded sort: some ranks sort ascending, others descending"));
        }
        let lens: Vec<usize> = lens.chunks_exact(2).map(|c| c[0] as usize).collect();
        let total = lens.iter().try_fold(0usize, |sum, len| sum.checked_add(*len));
        let total = total.ok_or_else(|| err!(TooLarge, "sharded sort: more keys than 2^64"))?;
        let pieces = pieces(total.saturating_mul(T::DTYPE.size()) / self.size());
        let mut samples: Vec<u32> = drawn.wait()?.into_iter().map(|key| number(key, descending)).collect();
        samples.sort_unstable();
        let numbers = self.separating(&samples, &lens, pieces)?;
        let separators = self.locate(&sorted, numbers, lens, descending)?;
        let cuts: Vec<Vec<usize>> = (0..self.size() * pieces)
            .map(|i| target(total, self.size(), i / pieces, i % pieces, pieces))
            .chain([total])
            .map(|target| separators.cut(target))
            .collect();
        self.exchange_runs(&sorted, &cuts, pieces, descending)
    }

    fn draw<T: Element>(&self, shard: Slice<'_, T>) -> Result<Readback<T>> {
        let (gpu, count) = (self.gpu(), shard.len().min(SAMPLES));
        let samples = gpu.alloc::<T>(count)?;
        if count > 0 {
            let program = sort_samples::draw(T::DTYPE, shard.len(), count, self.index() as u32, gpu.profile())?;
            let mut rec = gpu.recorder();
            let operands = [shard.untyped(), Slice::from(&samples).untyped()];
            gpu.prepare_lowered(program)?.record(&mut rec, &operands)?;
            rec.submit()?;
        }
        samples.slice(..)?.start_read()
    }

    /// The numbers of samples near the cuts, of all ranks: many for cuts between ranks, one for cuts between pieces,
    /// which need not be even. `own` are those of this rank in order.
    fn separating(&self, own: &[u32], lens: &[usize], pieces: usize) -> Result<Vec<u32>> {
        let size = self.size();
        let counts: Vec<usize> = lens.iter().map(|len| *len.min(&SAMPLES)).collect();
        let begins = ranges("sharded sort: samples", &counts)?;
        let all = self.gather_parts(own, &begins)?;
        // A sample stands for as many keys as its part has.
        let weights = begins.iter().zip(lens).flat_map(|(range, len)| {
            let weight = *len as f64 / range.len().max(1) as f64;
            all[range.clone()].iter().map(move |number| (*number, weight))
        });
        let mut weighted: Vec<(u32, f64)> = weights.collect();
        weighted.sort_by_key(|(number, _)| *number);
        let mut up_to = 0.0;
        let up_to: Vec<f64> = weighted
            .iter()
            .map(|(_, weight)| {
                up_to += weight;
                up_to
            })
            .collect();
        let total = lens.iter().sum();
        // Six standard deviations of the samples below a key.
        let around = 3 * weighted.len().isqrt() + 1;
        let mut numbers = Vec::new();
        for rank in 0..size {
            for piece in 0..pieces {
                let target = target(total, size, rank, piece, pieces) as f64;
                let at = first_that_is_not(up_to.len(), |i| up_to[i] < target);
                let around = if piece == 0 { around } else { 1 };
                let range = at.saturating_sub(around)..weighted.len().min(at + around);
                if rank + piece > 0 {
                    numbers.extend(weighted[range].iter().map(|(number, _)| *number));
                }
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// Finds where numbers lie in the sorted shards of all ranks.
    fn locate<T: Element>(
        &self, sorted: &Buffer<T>, numbers: Vec<u32>, lens: Vec<usize>, descending: bool,
    ) -> Result<Separators> {
        let (gpu, count) = (self.gpu(), numbers.len());
        let (words, bounds) = (gpu.upload(&numbers)?, gpu.alloc::<u32>(2 * count)?);
        if count > 0 {
            let program = sort_samples::bounds(T::DTYPE, sorted.len(), count, descending, gpu.profile())?;
            let mut rec = gpu.recorder();
            let operands =
                [Slice::from(sorted).untyped(), Slice::from(&words).untyped(), Slice::from(&bounds).untyped()];
            gpu.prepare_lowered(program)?.record(&mut rec, &operands)?;
            rec.submit()?;
        }
        let all = self.gather_equal(&bounds.slice(..)?.start_read()?.wait()?)?;
        let bounds = (0..self.size())
            .map(|rank| all[2 * rank * count..][..2 * count].chunks_exact(2).map(|b| [b[0], b[1]]).collect())
            .collect();
        Ok(Separators { numbers, bounds, lens })
    }

    /// Sends each rank its runs in pieces, which lie between the cuts of all ranks, and merges the runs of a piece
    /// while later ones are under way.
    fn exchange_runs<T: Element>(
        &self, sorted: &Buffer<T>, cuts: &[Vec<usize>], pieces: usize, descending: bool,
    ) -> Result<Buffer<T>>
    where
        Merge: Op<T>,
    {
        let (own, size) = (self.index(), self.size());
        let cut = |rank: usize, at: usize| cuts[at][rank];
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
        arrived.iter().for_each(Buffer::count_as_written);
        // All begin before a merge is submitted: what begins later would wait for it.
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
        let mut begin = 0;
        for (piece, started) in under_way.into_iter().enumerate() {
            let runs = (0..size).map(|from| SortedRun { buffer: arrived[from].clone(), range: here(from, piece) });
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
        &self, mut runs: Vec<SortedRun<T>>, whole: &Buffer<T>, begin: usize, descending: bool,
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

/// The keys of all ranks before a piece of a rank. The first piece is half as long as others, so that merges begin
/// early.
fn target(total: usize, ranks: usize, rank: usize, piece: usize, pieces: usize) -> usize {
    let whole = part(total, ranks, rank);
    whole.start + part(whole.len(), 2 * pieces - 1, (2 * piece).saturating_sub(1)).start
}

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
