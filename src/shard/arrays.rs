//! Reductions, histograms, scans and selections of sharded arrays.

use super::rank::Rank;
use super::transport::{Combine, Transport};
use crate::gpu::{Buffer, Slice};
use crate::plan::Plannable;
use crate::primitives::{Reduce, Reducer, Scan, TopK};
use crate::program::prelude::*;

impl<L: Transport> Rank<L> {
    /// Reduces a sharded array to one value, which all ranks get: [`Reduce`].
    ///
    /// Each rank reduces its shard, then the totals of all ranks in their order. Floating sums and products therefore
    /// round in another order than on one device; everything else has the same bits. Sums of integers wrap.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use std::time::Duration;
    /// use tilework::{prelude::*, shard};
    ///
    /// let gpus = vec![Gpu::new()?; 3];
    /// let largest = shard::run(&gpus, Duration::from_secs(10), |rank| {
    ///     let shard = rank.gpu().upload(&[3u32, 10 * rank.index() as u32])?;
    ///     rank.reduce(&shard, Max)
    /// })?;
    /// assert_eq!(largest, [20, 20, 20]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`Rank`]; [`Unsupported`](ErrorKind::Unsupported) for [`ArgMin`](crate::ArgMin) and
    /// [`ArgMax`](crate::ArgMax), whose positions do not combine, and operators whose result is a state;
    /// [`Shape`](ErrorKind::Shape) for no elements at all and an operator without an identity.
    pub fn reduce<'a, T, U, O>(&self, shard: impl Into<Slice<'a, T>>, op: O) -> Result<U>
    where
        T: Element,
        U: Element,
        O: Reducer<T, Output = U> + Reducer<U, Output = U> + Clone,
    {
        let operator = Reducer::<T>::operator(&op);
        if matches!(operator.name(), "argmin" | "argmax") {
            return Err(err!(
                Unsupported,
                "sharded reduce: positions of {} in shards do not combine; use top_k with k = 1",
                operator.name()
            ));
        }
        crate::stream::check_results(Reduce::NAME, &operator)?;
        let shard = shard.into();
        let own: Vec<U> =
            if shard.is_empty() { Vec::new() } else { self.gpu().reduce::<T, O>(shard, op.clone())?.read()? };
        let (totals, _) = self.all_gather(&own)?;
        self.combined(&totals, op)
    }

    /// Reduces some values on the device.
    pub(super) fn combined<U: Element, O: Reducer<U, Output = U>>(&self, values: &[U], op: O) -> Result<U> {
        match values {
            [one] => Ok(*one),
            _ => {
                let total = self.gpu().reduce::<U, O>(&self.gpu().upload(values)?, op)?.read()?;
                total.first().copied().ok_or_else(|| err!(Shape, "sharded reduce: no result"))
            }
        }
    }

    /// Counts the elements of a sharded array in equal bins from `lo` to `hi`, as
    /// [`Gpu::histogram`](crate::Gpu::histogram) does. All ranks get the counts.
    ///
    /// # Errors
    /// See [`Rank`]; those of [`Histogram`](crate::Histogram).
    pub fn histogram<'a, T: Element>(
        &self, shard: impl Into<Slice<'a, T>>, bins: usize, lo: f64, hi: f64,
    ) -> Result<Vec<u64>> {
        self.agree("sharded histogram", &["bins", "lo", "hi"], &[bins as u64, lo.to_bits(), hi.to_bits()])?;
        let counts = self.gpu().histogram(shard, bins, lo, hi)?.read()?;
        let mut counts: Vec<u64> = counts.into_iter().map(u64::from).collect();
        self.all_reduce(&mut counts, Combine::Sum)?;
        Ok(counts)
    }

    /// Scans a sharded array: element `i` of the result combines the elements up to `i`, of all shards. Each rank gets
    /// the results of its shard.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use std::time::Duration;
    /// use tilework::{prelude::*, shard};
    ///
    /// let gpus = vec![Gpu::new()?; 2];
    /// let scans = shard::run(&gpus, Duration::from_secs(10), |rank| {
    ///     rank.inclusive_scan(&rank.gpu().upload(&[1u32, 2, 3])?, Sum)?.read()
    /// })?;
    /// assert_eq!(scans.concat(), [1, 3, 6, 7, 9, 12]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// The totals of the shards before this one are an element in front of it. Floating sums round in another order
    /// than on one device. The shard is read twice, copied once, and scanned once.
    ///
    /// # Errors
    /// See [`Rank`]; [`Unsupported`](ErrorKind::Unsupported) for elements that do not have 4 bytes and operators
    /// over a state; those of [`Scan`].
    pub fn inclusive_scan<'a, T: Element, O: Reducer<T, Output = T> + Clone>(
        &self, shard: impl Into<Slice<'a, T>>, op: O,
    ) -> Result<Buffer<T>> {
        self.scan(shard.into(), op, false)
    }

    /// As [`inclusive_scan`](Self::inclusive_scan), without the element itself.
    ///
    /// # Errors
    /// As [`inclusive_scan`](Self::inclusive_scan).
    pub fn exclusive_scan<'a, T: Element, O: Reducer<T, Output = T> + Clone>(
        &self, shard: impl Into<Slice<'a, T>>, op: O,
    ) -> Result<Buffer<T>> {
        self.scan(shard.into(), op, true)
    }

    fn scan<T: Element, O: Reducer<T, Output = T> + Clone>(
        &self, shard: Slice<'_, T>, op: O, exclusive: bool,
    ) -> Result<Buffer<T>> {
        crate::stream::check_results("sharded scan", &op.operator())?;
        if T::DTYPE.size() != 4 {
            return Err(err!(
                Unsupported,
                "sharded scan: elements of {} do not have 4 bytes; use f32, i32 or u32",
                T::DTYPE
            ));
        }
        let (gpu, n) = (self.gpu(), shard.len());
        let own: Vec<T> = if n == 0 { Vec::new() } else { gpu.reduce::<T, O>(shard, op.clone())?.read()? };
        let (totals, begins) = self.all_gather(&own)?;
        let before = &totals[..begins[self.index()]];
        let planned = |op: O, n| Scan::new(op, n).when(exclusive, Scan::exclusive);
        let output = self.alloc(n)?;
        let mut rec = gpu.recorder();
        if n == 0 || before.is_empty() {
            planned(op, n).plan::<T>(gpu)?.record(&mut rec, shard, &output)?;
            rec.submit()?;
            return Ok(output);
        }
        let carry = self.combined(before, op.clone())?;
        let (longer, scanned) = (gpu.alloc::<T>(n + 1)?, gpu.alloc::<T>(n + 1)?);
        longer.slice(..1)?.write(&[carry])?;
        rec.copy(shard, longer.slice(1..)?)?;
        planned(op, n + 1).plan::<T>(gpu)?.record(&mut rec, &longer, &scanned)?;
        rec.copy(scanned.slice(1..)?, &output)?;
        rec.submit()?;
        Ok(output)
    }

    /// Finds the `k` largest elements of a sharded array, in order, with their positions in the whole array. All ranks
    /// get both. The order is that of [`TopK`]; the result has the same bits as on one device.
    ///
    /// # Errors
    /// See [`Rank`]; [`InvalidArgument`](ErrorKind::InvalidArgument) if `k` is 0 or above the number of all
    /// elements; those of [`TopK`].
    pub fn top_k<'a, T: Element>(&self, shard: impl Into<Slice<'a, T>>, k: usize) -> Result<(Vec<T>, Vec<u64>)>
    where
        TopK: Op<T>,
    {
        let shard = shard.into();
        let lens = self.gather_equal(&[shard.len() as u64, k as u64])?;
        let total: u64 = lens.chunks_exact(2).map(|c| c[0]).sum();
        if let Some(other) = lens.chunks_exact(2).find(|c| c[1] != k as u64) {
            return Err(err!(InvalidArgument, "sharded top-k: k is {k} here and {} on another rank", other[1]));
        }
        if k == 0 || k as u64 > total {
            return Err(err!(InvalidArgument, "sharded top-k: k is {k}; it must be from 1 to {total} elements"));
        }
        let first: u64 = lens.chunks_exact(2).take(self.index()).map(|c| c[0]).sum();
        let (mut values, mut places) = (Vec::new(), Vec::new());
        if !shard.is_empty() {
            let (best, at) = self.gpu().top_k(shard, k.min(shard.len()))?;
            values = best.read()?;
            places = at.read()?.into_iter().map(|i| first + u64::from(i)).collect();
        }
        let ((values, _), (places, _)) = (self.all_gather(&values)?, self.all_gather(&places)?);
        let (best, at) = self.gpu().top_k(&self.gpu().upload(&values)?, k)?;
        let mut found = Vec::new();
        make_room("sharded top-k", &mut found, k)?;
        found.extend(at.read()?.into_iter().filter_map(|i| places.get(i as usize)));
        Ok((best.read()?, found))
    }
}
