//! Ops over host data of any length, through pipelines.

mod flow;
mod scan;

use super::merge::{SortKey, merge};
use super::pipeline::{Cancel, Outcome, Pipeline};
use super::source::Source;
use crate::elementwise::{Map, MapFn, Zip, ZipFn};
use crate::gpu::Gpu;
use crate::primitives::{ArgMax, ArgMin, Histogram, Max, Min, Operator, Predicate, RadixSort, Reduce, Reducer, Select};
use crate::program::prelude::*;
use flow::Flow;

/// Default bytes of the largest input or output of a chunk.
const CHUNK_BYTES: usize = 16 << 20;
/// Default bytes of device memory and staging together.
const MEMORY: u64 = 1 << 30;

impl Gpu {
    /// Starts an op over host data of any length, in chunks: see [`Streamed`].
    pub fn streamed(&self) -> Streamed {
        Streamed {
            gpu: self.clone(),
            chunk: None,
            in_flight: 3,
            memory: MEMORY,
            descending: false,
            cancel: Cancel::new(),
        }
    }
}

/// Ops over host data of any length: longer than one binding, one buffer, or all of the device's memory.
///
/// Data come from a [`Source`]: a slice, a reader or an iterator. They go to the device in chunks, several in flight.
/// The host keeps only the result. It equals the op's result on all data at once, except that floating sums and
/// products are rounded in the order of the chunks.
///
/// # Example
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::stream::Reader;
///
/// let gpu = Gpu::new()?;
/// let streamed = gpu.streamed().chunk(1 << 14);
/// let x: Vec<u32> = (0..100_000).rev().collect();
/// assert_eq!(streamed.reduce(&x[..], Max)?, 99_999);
/// assert_eq!(streamed.sort(&x[..])?[..3], [0, 1, 2]);
/// assert_eq!(streamed.inclusive_scan(&x[..], Min)?[99_999], 0);
///
/// let text = Reader(&b"bytes of a file, perhaps"[..]);
/// let counts = streamed.histogram::<u8>(text, 256, 0.0, 256.0)?;
/// assert_eq!(counts[usize::from(b'e')], 3);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Errors of its methods
/// Those of the op; [`Cancelled`](ErrorKind::Cancelled); those of the source or the sink, with the chunk's
/// number; [`InvalidArgument`](ErrorKind::InvalidArgument) for a chunk of 0 elements or 0 chunks in flight;
/// out of device memory; device lost.
#[derive(Debug, Clone)]
pub struct Streamed {
    gpu: Gpu,
    chunk: Option<usize>,
    in_flight: usize,
    memory: u64,
    descending: bool,
    cancel: Cancel,
}

impl Streamed {
    /// Sets the elements of a chunk. By default the longest input or output has 16 MiB. A chunk never exceeds one
    /// binding or the allowed memory.
    #[must_use]
    pub fn chunk(mut self, elements: usize) -> Self {
        self.chunk = Some(elements);
        self
    }

    /// Sets the chunks in flight: 3 by default; 1 runs one after another.
    #[must_use]
    pub fn in_flight(mut self, chunks: usize) -> Self {
        self.in_flight = chunks;
        self
    }

    /// Sets the bytes of device memory and staging that all chunks in flight may take together, apart from scratch of
    /// kernels: 1 GiB by default.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Sorts in descending order; other ops ignore it.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.descending = true;
        self
    }

    /// Stops the work when this token is cancelled.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Elements of a chunk whose inputs and outputs have these bytes per element.
    fn chunk_len(&self, op: &str, left: Option<usize>, sizes: &[usize]) -> Result<usize> {
        let limits = &self.gpu.profile().limits;
        let longest = sizes.iter().copied().max().unwrap_or(1);
        if self.chunk == Some(0) {
            return Err(err!(InvalidArgument, "{op}: chunks of 0 elements; use 1 or more"));
        }
        let bindable = limits.max_storage_binding.min(limits.max_buffer_size) as usize / longest;
        // Each element is on the device and in staging.
        let one = 2 * sizes.iter().sum::<usize>() as u64;
        let all = one.saturating_mul(self.in_flight.max(1) as u64);
        let affordable = usize::try_from(self.memory / all).unwrap_or(usize::MAX);
        if affordable == 0 {
            return Err(err!(
                InvalidArgument,
                "{op}: {} bytes of memory hold no element of each of {} chunks in flight; allow {all} or more",
                self.memory,
                self.in_flight
            ));
        }
        let wanted = self.chunk.unwrap_or(CHUNK_BYTES / longest);
        Ok(wanted.min(bindable).min(affordable).min(left.unwrap_or(usize::MAX)).max(1))
    }

    fn pipeline(&self, left: Option<usize>, len: usize) -> Pipeline {
        let chunks = left.map_or(usize::MAX, |left| left.div_ceil(len).max(1));
        Pipeline::new(&self.gpu, self.in_flight.min(chunks)).cancelled_by(&self.cancel)
    }

    /// Applies `function` to every element: [`Map`].
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn map<T: Element>(&self, x: impl Source<T>, function: MapFn) -> Result<Vec<T>> {
        let mut all = with_room(Map::NAME, x.left().unwrap_or(0))?;
        self.map_to(x, function, |chunk| append(Map::NAME, &mut all, chunk))?;
        Ok(all)
    }

    /// As [`map`](Self::map); `sink` gets the results chunk by chunk.
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn map_to<T: Element>(
        &self, x: impl Source<T>, function: MapFn, mut sink: impl FnMut(&[T]) -> Outcome + Send,
    ) -> Result<()> {
        let mut flow = Flow::new(self, Map::NAME, x, &[T::DTYPE.size(); 2])?;
        let mut plans = flow.plans(move |profile, n| Op::<T>::lower(&Map::new(function.clone(), n), profile))?;
        let y = flow.output::<T>(flow.len());
        flow.run(|rec, chunk| chunk.record(rec, &mut plans, &[chunk.output(y, chunk.n)?]), |chunk| sink(chunk.read(y)?))
    }

    /// Applies `function` to every pair of elements: [`Zip`].
    ///
    /// # Errors
    /// See [`Streamed`]; [`Shape`](ErrorKind::Shape) if one source ends before the other.
    pub fn zip<T: Element>(&self, x: impl Source<T>, y: impl Source<T>, function: ZipFn) -> Result<Vec<T>> {
        let mut all = with_room(Zip::NAME, x.left().unwrap_or(0))?;
        self.zip_to(x, y, function, |chunk| append(Zip::NAME, &mut all, chunk))?;
        Ok(all)
    }

    /// As [`zip`](Self::zip); `sink` gets the results chunk by chunk.
    ///
    /// # Errors
    /// As [`zip`](Self::zip).
    pub fn zip_to<T: Element>(
        &self, x: impl Source<T>, y: impl Source<T>, function: ZipFn, mut sink: impl FnMut(&[T]) -> Outcome + Send,
    ) -> Result<()> {
        let mut flow = Flow::new(self, Zip::NAME, x, &[T::DTYPE.size(); 3])?.beside(y);
        let mut plans = flow.plans(move |profile, n| Op::<T>::lower(&Zip::new(function.clone(), n), profile))?;
        let z = flow.output::<T>(flow.len());
        flow.run(|rec, chunk| chunk.record(rec, &mut plans, &[chunk.output(z, chunk.n)?]), |chunk| sink(chunk.read(z)?))
    }

    /// Reduces all elements to one value: [`Reduce`]. Chunks are combined in order.
    ///
    /// Sums of integers wrap, and f16 is rounded after each chunk. For positions use [`arg_min`](Self::arg_min).
    ///
    /// # Errors
    /// See [`Streamed`]; [`Unsupported`](ErrorKind::Unsupported) for [`ArgMin`] and [`ArgMax`], whose
    /// positions do not combine.
    pub fn reduce<T, U, O>(&self, input: impl Source<T>, op: O) -> Result<U>
    where
        T: Element,
        U: Element,
        O: Reducer<T, Output = U> + Reducer<U, Output = U> + Clone,
    {
        let operator = Reducer::<T>::operator(&op);
        if matches!(operator.name(), "argmin" | "argmax") {
            return Err(err!(
                Unsupported,
                "reduce: positions of {} in chunks do not combine; use arg_min or arg_max",
                operator.name()
            ));
        }
        check_results(Reduce::NAME, &operator)?;
        let mut totals = Vec::new();
        let mut flow = Flow::new(self, Reduce::NAME, input, &[T::DTYPE.size()])?;
        let each = op.clone();
        let mut plans = flow.plans(move |profile, n| Op::<T>::lower(&Reduce::new(each.clone(), n), profile))?;
        let total = flow.output::<U>(1);
        flow.run(
            |rec, chunk| chunk.record(rec, &mut plans, &[chunk.output(total, 1)?]),
            |chunk| append(Reduce::NAME, &mut totals, chunk.read(total)?),
        )?;
        match totals[..] {
            [total] => Ok(total),
            // Empty input has a result only if the operator has an identity.
            [] => {
                let output = self.gpu.alloc::<U>(1)?;
                let nothing = self.gpu.alloc::<T>(0)?;
                let mut rec = self.gpu.recorder();
                let operands = [nothing.slice(..)?.untyped(), output.slice(..)?.untyped()];
                plans.get(0)?.record(&mut rec, &operands)?;
                rec.submit()?;
                Ok(output.read()?[0])
            }
            _ => {
                // At least two totals per chunk, or combining them would never end.
                let again = Self { chunk: self.chunk.map(|n| n.max(2)), ..self.clone() };
                again.reduce(&totals[..], op)
            }
        }
    }

    /// Finds the first position of the smallest element; of the first NaN if there is one.
    ///
    /// # Errors
    /// See [`Streamed`]; [`Shape`](ErrorKind::Shape) for no elements.
    pub fn arg_min<T>(&self, input: impl Source<T>) -> Result<u64>
    where
        T: Element + Into<f64>,
        ArgMin: Reducer<T, Output = u32>,
        Min: Reducer<T, Output = T>,
    {
        self.position(input, ArgMin, Min, |new, old| new < old)
    }

    /// Finds the first position of the largest element; of the first NaN if there is one.
    ///
    /// # Errors
    /// As [`arg_min`](Self::arg_min).
    pub fn arg_max<T>(&self, input: impl Source<T>) -> Result<u64>
    where
        T: Element + Into<f64>,
        ArgMax: Reducer<T, Output = u32>,
        Max: Reducer<T, Output = T>,
    {
        self.position(input, ArgMax, Max, |new, old| new > old)
    }

    fn position<T, P, V>(
        &self, input: impl Source<T>, position: P, value: V, better: fn(f64, f64) -> bool,
    ) -> Result<u64>
    where
        T: Element + Into<f64>,
        P: Reducer<T, Output = u32> + Clone,
        V: Reducer<T, Output = T> + Clone,
    {
        let mut flow = Flow::new(self, Reduce::NAME, input, &[T::DTYPE.size()])?;
        let mut positions = flow.plans(move |profile, n| Op::<T>::lower(&Reduce::new(position.clone(), n), profile))?;
        let mut values = flow.plans(move |profile, n| Op::<T>::lower(&Reduce::new(value.clone(), n), profile))?;
        let (place, extreme) = (flow.output::<u32>(1), flow.output::<T>(1));
        let len = flow.len();
        let mut best: Option<(u64, f64)> = None;
        flow.run(
            |rec, chunk| {
                chunk.record(rec, &mut positions, &[chunk.output(place, 1)?])?;
                chunk.record(rec, &mut values, &[chunk.output(extreme, 1)?])
            },
            |chunk| {
                // All earlier chunks are full: `Feed` fills them.
                let at = chunk.number() as u64 * len as u64 + u64::from(chunk.read(place)?[0]);
                let new: f64 = chunk.read(extreme)?[0].into();
                let wins = |old: f64| !old.is_nan() && (new.is_nan() || better(new, old));
                if best.is_none_or(|(_, old)| wins(old)) {
                    best = Some((at, new));
                }
                Ok(())
            },
        )?;
        best.map(|(at, _)| at).ok_or_else(|| err!(Shape, "reduce: 0 elements have no extreme"))
    }

    /// Counts the elements in each of `bins` bins of equal width from `lo` to `hi`: [`Histogram`].
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn histogram<T: Element>(&self, input: impl Source<T>, bins: usize, lo: f64, hi: f64) -> Result<Vec<u64>> {
        self.count(input, bins, |n| Histogram::new(n, bins).range(lo, hi))
    }

    /// Counts the elements between neighbouring `edges`: [`Histogram::with_edges`].
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn histogram_edges<T: Element>(&self, input: impl Source<T>, edges: &[f64]) -> Result<Vec<u64>> {
        self.count(input, edges.len().saturating_sub(1), |n| Histogram::with_edges(n, edges))
    }

    fn count<T: Element>(
        &self, input: impl Source<T>, bins: usize, histogram: impl Fn(usize) -> Histogram,
    ) -> Result<Vec<u64>> {
        let mut flow = Flow::new(self, Histogram::NAME, input, &[T::DTYPE.size()])?;
        let mut plans = flow.plans(|profile, n| Op::<T>::lower(&histogram(n), profile))?;
        let counts = flow.output::<u32>(bins);
        let mut all = filled(Histogram::NAME, bins, 0u64)?;
        flow.run(
            |rec, chunk| chunk.record(rec, &mut plans, &[chunk.output(counts, bins)?]),
            |chunk| {
                let counts = chunk.read(counts)?;
                all.iter_mut().zip(counts).for_each(|(all, n)| *all += u64::from(*n));
                Ok(())
            },
        )?;
        Ok(all)
    }

    /// Selects the elements with a nonzero flag, in order: [`Select`].
    ///
    /// # Errors
    /// See [`Streamed`]; [`Shape`](ErrorKind::Shape) if one source ends before the other.
    pub fn select<T: Element>(&self, input: impl Source<T>, flags: impl Source<u32>) -> Result<Vec<T>>
    where
        Select: Op<T>,
    {
        let size = T::DTYPE.size();
        let flow = Flow::new(self, Select::NAME, input, &[size, 4, size])?.beside(flags);
        selected(flow, |profile, n| Op::<T>::lower(&Select::new(n), profile))
    }

    /// Selects the elements that `predicate` keeps, in order: [`Select::by`].
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn select_by<T: Element>(&self, input: impl Source<T>, predicate: &Predicate) -> Result<Vec<T>>
    where
        Select: Op<T>,
    {
        let flow = Flow::new(self, Select::NAME, input, &[T::DTYPE.size(); 2])?;
        selected(flow, |profile, n| Op::<T>::lower(&Select::by(n, predicate.clone()), profile))
    }

    /// Sorts the keys, in ascending order unless [`descending`](Self::descending) is set: [`RadixSort`]. The device
    /// sorts chunks, and the host merges them on all its cores. The host keeps a second copy of the keys besides the
    /// result.
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn sort<T: SortKey>(&self, keys: impl Source<T>) -> Result<Vec<T>> {
        let flow = Flow::new(self, RadixSort::NAME, keys, &[T::DTYPE.size(); 2])?;
        Ok(self.sorted(flow, false)?.0)
    }

    /// As [`sort`](Self::sort), with a value for each key. Equal keys keep their order.
    ///
    /// # Errors
    /// See [`Streamed`]; [`Shape`](ErrorKind::Shape) if one source ends before the other.
    pub fn sort_pairs<T: SortKey>(&self, keys: impl Source<T>, values: impl Source<u32>) -> Result<(Vec<T>, Vec<u32>)> {
        let size = T::DTYPE.size();
        let flow = Flow::new(self, RadixSort::NAME, keys, &[size, size, 4, 4])?.beside(values);
        self.sorted(flow, true)
    }

    /// Sorts the keys and, if the second source gives any, their values.
    fn sorted<T: SortKey>(&self, mut flow: Flow<'_, T>, with_values: bool) -> Result<(Vec<T>, Vec<u32>)> {
        let (len, descending) = (flow.len(), self.descending);
        let sort = |n| {
            let sort = RadixSort::new(n).when(descending, |op| op.descending());
            if with_values { sort.with_values() } else { sort }
        };
        let mut plans = flow.plans(move |profile, n| Op::<T>::lower(&sort(n), profile))?;
        let key = flow.output::<T>(len);
        let value = with_values.then(|| flow.output::<u32>(len));
        let room = flow.left().unwrap_or(0);
        let mut sorted = with_room(RadixSort::NAME, room)?;
        let mut moved = with_room(RadixSort::NAME, if with_values { room } else { 0 })?;
        flow.run(
            |rec, chunk| {
                let mut outputs = vec![chunk.output(key, chunk.n)?];
                if let Some(value) = value {
                    outputs.push(chunk.output(value, chunk.n)?);
                }
                chunk.record(rec, &mut plans, &outputs)
            },
            |chunk| {
                append(RadixSort::NAME, &mut sorted, chunk.read(key)?)?;
                match value {
                    Some(value) => append(RadixSort::NAME, &mut moved, chunk.read(value)?),
                    None => Ok(()),
                }
            },
        )?;
        drop(flow);
        if sorted.len() <= len {
            return Ok((sorted, moved));
        }
        let mut merged = filled(RadixSort::NAME, sorted.len(), T::default())?;
        let mut beside = filled(RadixSort::NAME, moved.len(), 0)?;
        merge((&sorted, &moved), (&mut merged, &mut beside), len, descending, &self.cancel)?;
        self.not_cancelled()?;
        Ok((merged, beside))
    }

    fn not_cancelled(&self) -> Result<()> {
        if self.cancel.is_cancelled() {
            return Err(err!(Cancelled, "sort: cancelled while sorted chunks were merged"));
        }
        Ok(())
    }
}

/// What a selection keeps of all chunks.
fn selected<T: Element>(
    mut flow: Flow<'_, T>, lower: impl Fn(&DeviceProfile, usize) -> Result<Program>,
) -> Result<Vec<T>> {
    let mut plans = flow.plans(lower)?;
    let (kept, count) = (flow.output::<T>(flow.len()), flow.output::<u32>(1));
    let mut all = Vec::new();
    flow.run(
        |rec, chunk| chunk.record(rec, &mut plans, &[chunk.output(kept, chunk.n)?, chunk.output(count, 1)?]),
        |chunk| {
            let count = chunk.read(count)?[0] as usize;
            append(Select::NAME, &mut all, &chunk.read(kept)?[..count])
        },
    )?;
    Ok(all)
}

/// Appends a chunk's results to those of all, if there is memory for them.
fn append<T: Copy>(op: &str, all: &mut Vec<T>, chunk: &[T]) -> Outcome {
    make_room(op, all, chunk.len())?;
    all.extend_from_slice(chunk);
    Ok(())
}

/// Rejects an operator whose results cannot take part as elements.
pub(crate) fn check_results(op: &str, operator: &Operator) -> Result<()> {
    if operator.combines_results() {
        return Ok(());
    }
    Err(err!(
        Unsupported,
        "{op}: results of {} do not combine as elements do, so chunks cannot; take an operator whose results do, or keep \
         the array on the device",
        operator.name()
    ))
}
