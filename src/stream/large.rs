//! Ops over host data of any length, through pipelines.

use super::chunk::{Fill, Input};
use super::merge::{SortKey, merge};
use super::pipeline::{Cancel, Outcome, Pipeline};
use super::source::{Feed, Source};
use crate::element::{DType, Element};
use crate::elementwise::{Map, MapFn, Zip, ZipFn};
use crate::error::{Result, err, filled, make_room, with_room};
use crate::gpu::{Buffer, Executable, Gpu, RawSlice, Recorder, Slice};
use crate::primitives::{
    ArgMax, ArgMin, Histogram, Max, Min, Operator, Predicate, RadixSort, Reduce, Reducer, Scan, Select,
};
use crate::program::{DeviceProfile, Op, Program};
use crate::quantize::Cast;
use crate::tune::{lower_known, lower_on};
use half::f16;

/// Bytes of the largest input or output of a chunk, unless the caller says otherwise.
const CHUNK_BYTES: usize = 16 << 20;
/// Bytes of device memory and staging together, unless the caller says otherwise.
const MEMORY: u64 = 1 << 30;

impl Gpu {
    /// Ops over host data of any length, chunk by chunk: see [`Streamed`].
    pub fn streamed(&self) -> Streamed {
        Streamed { gpu: self.clone(), chunk: None, in_flight: 3, memory: MEMORY, cancel: Cancel::new() }
    }
}

/// Ops over host data of any length: longer than one binding, one buffer, or all of the device's memory.
///
/// Data come from a [`Source`]: a slice, a reader or an iterator. They go to the device in chunks, several in flight,
/// and what the host keeps is the result alone. A result is what the op would give for all data at once, except that
/// floating sums and products are rounded in another order: that of the chunks.
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
/// assert_eq!(streamed.sort(&x[..], false)?[..3], [0, 1, 2]);
/// assert_eq!(streamed.inclusive_scan(&x[..], Min)?[99_999], 0);
///
/// let text = Reader(&b"bytes of a file, perhaps"[..]);
/// let counts = streamed.histogram::<u8>(text, 256, 0.0, 256.0)?;
/// assert_eq!(counts[usize::from(b'e')], 3);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Errors of its methods
/// Those of the op; [`Cancelled`](crate::ErrorKind::Cancelled); what the source or the sink gave, with the chunk's number;
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a chunk of 0 elements or no chunk in flight; out of device
/// memory; device lost.
#[derive(Debug, Clone)]
pub struct Streamed {
    gpu: Gpu,
    chunk: Option<usize>,
    in_flight: usize,
    memory: u64,
    cancel: Cancel,
}

/// An op for so many elements.
type Lower<'p> = dyn Fn(&DeviceProfile, usize) -> Result<Program> + 'p;

/// The kernels of chunks: all have one length but the first or the last.
struct Plans<'p> {
    gpu: &'p Gpu,
    lower: Box<Lower<'p>>,
    ready: Vec<(usize, Executable)>,
}

impl<'p> Plans<'p> {
    /// Plans for chunks of `len` elements, as single ops are planned: what is wrong with the op is said before anything
    /// runs, and tuning that measures has the device for itself.
    fn new(
        gpu: &'p Gpu,
        len: usize,
        lower: impl Fn(&DeviceProfile, usize) -> Result<Program> + 'p,
    ) -> Result<Self> {
        let program = lower_on(gpu, &|profile| lower(profile, len))?;
        let ready = vec![(len, gpu.prepare_lowered(program)?)];
        Ok(Self { gpu, lower: Box::new(lower), ready })
    }

    fn get(&mut self, len: usize) -> Result<&Executable> {
        let at = match self.ready.iter().position(|(n, _)| *n == len) {
            Some(at) => at,
            None => {
                self.ready.truncate(2);
                let program = lower_known(self.gpu, &|profile| (self.lower)(profile, len))?;
                self.ready.insert(0, (len, self.gpu.prepare_lowered(program)?));
                0
            }
        };
        Ok(&self.ready[at].1)
    }
}

/// Fills an input from a source: whether there was anything left. All chunks but the last are full.
fn fill_from<T: Element>(
    chunk: &mut Fill<'_>,
    input: Input<T>,
    source: &mut Feed<impl Source<T>>,
) -> Outcome<bool> {
    let mut space = chunk.space(input)?;
    source.fill(&mut space)?;
    Ok(!space.is_empty())
}

impl Streamed {
    /// Elements of a chunk. By default as many as make 16 MiB of the longest input or output. Either way it is no more
    /// than one binding holds, and than the memory allows.
    #[must_use]
    pub fn chunk(mut self, elements: usize) -> Self {
        self.chunk = Some(elements);
        self
    }

    /// Chunks in flight: 3 by default; 1 does one after another.
    #[must_use]
    pub fn in_flight(mut self, chunks: usize) -> Self {
        self.in_flight = chunks;
        self
    }

    /// Bytes of device memory and staging that all chunks in flight may take together, beside what kernels take as scratch:
    /// 1 GiB by default.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Stops the work when this token is cancelled.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Elements of a chunk with inputs and outputs of these bytes an element.
    fn chunk_len(&self, op: &str, left: Option<usize>, sizes: &[usize]) -> Result<usize> {
        let limits = &self.gpu.profile().limits;
        let longest = sizes.iter().copied().max().unwrap_or(1);
        if self.chunk == Some(0) {
            return Err(err!(InvalidArgument, "{op}: chunks of 0 elements; take 1 or more"));
        }
        let bindable = limits.max_storage_binding.min(limits.max_buffer_size) as usize / longest;
        // Each is there on the device and in staging.
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

    /// `function` of every element: [`Map`].
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn map<T: Element>(&self, x: impl Source<T>, function: MapFn) -> Result<Vec<T>> {
        let mut all = with_room("map", x.left().unwrap_or(0))?;
        self.map_to(x, function, |chunk| append("map", &mut all, chunk))?;
        Ok(all)
    }

    /// As [`map`](Self::map), and `sink` gets the results, chunk by chunk.
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn map_to<T: Element>(
        &self,
        x: impl Source<T>,
        function: MapFn,
        mut sink: impl FnMut(&[T]) -> Outcome + Send,
    ) -> Result<()> {
        let (size, mut x) = (T::DTYPE.size(), Feed::new("map", x, &self.cancel));
        let len = self.chunk_len("map", x.announced(), &[size, size])?;
        let map = move |profile: &_, n| Op::<T>::lower(&Map::new(function.clone(), n), profile);
        let mut plans = Plans::new(&self.gpu, len, map)?;
        let mut pipeline = self.pipeline(x.announced(), len);
        let (input, output) = (pipeline.input::<T>(len), pipeline.output::<T>(len));
        pipeline.run(
            |chunk| fill_from(chunk, input, &mut x),
            |rec, chunk| {
                let x = chunk.input(input)?;
                let y = chunk.output(output, x.len())?;
                Ok(plans.get(x.len())?.record(rec, &[x.untyped(), y.untyped()])?)
            },
            |chunk| sink(chunk.read(output)?),
        )?;
        Ok(())
    }

    /// `function` of every pair of elements: [`Zip`].
    ///
    /// # Errors
    /// See [`Streamed`]; [`Shape`](crate::ErrorKind::Shape) if one source ends before the other.
    pub fn zip<T: Element>(&self, x: impl Source<T>, y: impl Source<T>, function: ZipFn) -> Result<Vec<T>> {
        let mut all = with_room("zip", x.left().unwrap_or(0))?;
        self.zip_to(x, y, function, |chunk| append("zip", &mut all, chunk))?;
        Ok(all)
    }

    /// As [`zip`](Self::zip), and `sink` gets the results, chunk by chunk.
    ///
    /// # Errors
    /// As [`zip`](Self::zip).
    pub fn zip_to<T: Element>(
        &self,
        x: impl Source<T>,
        y: impl Source<T>,
        function: ZipFn,
        mut sink: impl FnMut(&[T]) -> Outcome + Send,
    ) -> Result<()> {
        let (mut x, mut y) = (Feed::new("zip", x, &self.cancel), Feed::new("zip", y, &self.cancel));
        let len = self.chunk_len("zip", x.announced(), &[T::DTYPE.size(); 3])?;
        let zip = move |profile: &_, n| Op::<T>::lower(&Zip::new(function.clone(), n), profile);
        let mut plans = Plans::new(&self.gpu, len, zip)?;
        let mut pipeline = self.pipeline(x.announced(), len);
        let (xs, ys) = (pipeline.input::<T>(len), pipeline.input::<T>(len));
        let output = pipeline.output::<T>(len);
        pipeline.run(
            |chunk| {
                fill_from(chunk, xs, &mut x)?;
                fill_from(chunk, ys, &mut y)?;
                let (x, y) = (chunk.space(xs)?.len(), chunk.space(ys)?.len());
                same_length("zip", x, y)?;
                Ok(x > 0)
            },
            |rec, chunk| {
                let (x, y) = (chunk.input(xs)?, chunk.input(ys)?);
                let z = chunk.output(output, x.len())?;
                Ok(plans.get(x.len())?.record(rec, &[x.untyped(), y.untyped(), z.untyped()])?)
            },
            |chunk| sink(chunk.read(output)?),
        )?;
        Ok(())
    }

    /// All elements to one value: [`Reduce`]. Chunks are combined in order.
    ///
    /// Sums of integers wrap, and f16 is rounded after each chunk. For positions see [`arg_min`](Self::arg_min).
    ///
    /// # Errors
    /// See [`Streamed`]; [`Unsupported`](crate::ErrorKind::Unsupported) for [`ArgMin`] and [`ArgMax`], whose positions do
    /// not combine.
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
                "reduce: positions of {} in chunks do not combine; take arg_min or arg_max",
                operator.name()
            ));
        }
        let mut totals = Vec::new();
        let mut input = Feed::new("reduce", input, &self.cancel);
        let left = input.announced();
        let len = self.chunk_len("reduce", left, &[T::DTYPE.size()])?;
        let each = op.clone();
        let reduce = move |profile: &_, n| Op::<T>::lower(&Reduce::new(each.clone(), n), profile);
        let mut plans = Plans::new(&self.gpu, len, reduce)?;
        let mut pipeline = self.pipeline(left, len);
        let (elements, total) = (pipeline.input::<T>(len), pipeline.output::<U>(1));
        pipeline.run(
            |chunk| fill_from(chunk, elements, &mut input),
            |rec, chunk| {
                let input = chunk.input(elements)?;
                let total = chunk.output(total, 1)?;
                Ok(plans.get(input.len())?.record(rec, &[input.untyped(), total.untyped()])?)
            },
            |chunk| append("reduce", &mut totals, chunk.read(total)?),
        )?;
        match totals[..] {
            [total] => Ok(total),
            // Nothing has a value only where the operator has an identity.
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
                // At least two totals a chunk, or combining them would never end.
                let again = Self { chunk: self.chunk.map(|n| n.max(2)), ..self.clone() };
                again.reduce(&totals[..], op)
            }
        }
    }

    /// First position of the least element; of the first NaN if there is one.
    ///
    /// # Errors
    /// See [`Streamed`]; [`Shape`](crate::ErrorKind::Shape) for no elements.
    pub fn arg_min<T>(&self, input: impl Source<T>) -> Result<u64>
    where
        T: Element + Into<f64>,
        ArgMin: Reducer<T, Output = u32>,
        Min: Reducer<T, Output = T>,
    {
        self.position(input, ArgMin, Min, |new, old| new < old)
    }

    /// First position of the greatest element; of the first NaN if there is one.
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
        &self,
        input: impl Source<T>,
        position: P,
        value: V,
        better: fn(f64, f64) -> bool,
    ) -> Result<u64>
    where
        T: Element + Into<f64>,
        P: Reducer<T, Output = u32> + Clone,
        V: Reducer<T, Output = T> + Clone,
    {
        let mut input = Feed::new("reduce", input, &self.cancel);
        let left = input.announced();
        let len = self.chunk_len("reduce", left, &[T::DTYPE.size()])?;
        let position = move |profile: &_, n| Op::<T>::lower(&Reduce::new(position.clone(), n), profile);
        let mut positions = Plans::new(&self.gpu, len, position)?;
        let value = move |profile: &_, n| Op::<T>::lower(&Reduce::new(value.clone(), n), profile);
        let mut values = Plans::new(&self.gpu, len, value)?;
        let mut pipeline = self.pipeline(left, len);
        let elements = pipeline.input::<T>(len);
        let (place, extreme) = (pipeline.output::<u32>(1), pipeline.output::<T>(1));
        let mut best: Option<(u64, f64)> = None;
        pipeline.run(
            |chunk| fill_from(chunk, elements, &mut input),
            |rec, chunk| {
                let input = chunk.input(elements)?;
                let (place, extreme) = (chunk.output(place, 1)?, chunk.output(extreme, 1)?);
                positions.get(input.len())?.record(rec, &[input.untyped(), place.untyped()])?;
                Ok(values.get(input.len())?.record(rec, &[input.untyped(), extreme.untyped()])?)
            },
            |chunk| {
                // All chunks before are full: `Feed` fills them.
                let at = chunk.number() as u64 * len as u64 + u64::from(chunk.read(place)?[0]);
                let new: f64 = chunk.read(extreme)?[0].into();
                let wins = |old: f64| !old.is_nan() && (new.is_nan() || better(new, old));
                if best.is_none_or(|(_, old)| wins(old)) {
                    best = Some((at, new));
                }
                Ok(())
            },
        )?;
        best.map(|(at, _)| at).ok_or_else(|| err!(Shape, "reduce: the position of an extreme of 0 elements"))
    }

    /// All prefixes, each with its last element: [`Scan`]. Of f32, f16, i32 and u32.
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn inclusive_scan<T, O>(&self, input: impl Source<T>, op: O) -> Result<Vec<T>>
    where
        T: Element,
        O: Reducer<T, Output = T> + Clone,
    {
        let mut all = with_room("scan", input.left().unwrap_or(0))?;
        self.inclusive_scan_to(input, op, |chunk| append("scan", &mut all, chunk))?;
        Ok(all)
    }

    /// All prefixes, each without its last element; the first is the identity: [`Scan::exclusive`]. Of f32, f16, i32 and u32.
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn exclusive_scan<T, O>(&self, input: impl Source<T>, op: O) -> Result<Vec<T>>
    where
        T: Element,
        O: Reducer<T, Output = T> + Clone,
    {
        let mut all = with_room("scan", input.left().unwrap_or(0).saturating_add(1))?;
        // An exclusive scan is the identity, and the inclusive one without its last.
        let identity =
            Op::<T>::lower(&Scan::new(op.clone(), 1).exclusive(true), &self.gpu.planning_profile())?;
        let (any, first) = (self.gpu.upload(&[T::default()])?, self.gpu.alloc::<T>(1)?);
        let mut rec = self.gpu.recorder();
        let operands = [any.slice(..)?.untyped(), first.slice(..)?.untyped()];
        self.gpu.prepare_lowered(identity)?.record(&mut rec, &operands)?;
        rec.submit()?;
        all.extend(first.read()?);
        self.inclusive_scan_to(input, op, |chunk| append("scan", &mut all, chunk))?;
        all.pop();
        Ok(all)
    }

    /// As [`inclusive_scan`](Self::inclusive_scan), and `sink` gets the results, chunk by chunk.
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn inclusive_scan_to<T, O>(
        &self,
        input: impl Source<T>,
        op: O,
        mut sink: impl FnMut(&[T]) -> Outcome + Send,
    ) -> Result<()>
    where
        T: Element,
        O: Reducer<T, Output = T> + Clone,
    {
        let size = T::DTYPE.size();
        let mut input = Feed::new("scan", input, &self.cancel);
        let left = input.announced();
        let len = self.chunk_len("scan", left, &[size, size])?;
        // Chunks after the first begin with the last result of the one before, which the device puts there.
        let room = len.max(2);
        let mut scans = match T::DTYPE {
            DType::F32 | DType::I32 | DType::U32 => Scans::Words {
                scan: Plans::new(&self.gpu, room, move |profile: &_, n| {
                    Op::<T>::lower(&Scan::new(op.clone(), n), profile)
                })?,
                carry: self.gpu.alloc::<T>(1)?,
            },
            DType::F16 => Scans::Halves(Halves::new(&self.gpu, op.operator(), room)?),
            other => {
                return Err(err!(
                    Unsupported,
                    "scan: it takes f32, f16, i32 and u32, not {other}; take one of these"
                ));
            }
        };
        let mut pipeline = self.pipeline(left, room);
        let (elements, prefixes) = (pipeline.input::<T>(room), pipeline.output::<T>(room));
        let carried = |number: usize| usize::from(number > 0);
        pipeline.run(
            |chunk| {
                let before = carried(chunk.number());
                let mut space = chunk.space(elements)?;
                space.extend(&[T::default()][..before])?;
                input.fill(&mut space)?;
                Ok(space.len() > before)
            },
            |rec, chunk| {
                let x = chunk.input(elements)?;
                let y = chunk.output(prefixes, x.len())?;
                Ok(scans.record(rec, x, y, chunk.number() > 0)?)
            },
            |chunk| sink(&chunk.read(prefixes)?[carried(chunk.number())..]),
        )?;
        Ok(())
    }

    /// How many elements fall into each of `bins` bins of equal width from `lo` to `hi`: [`Histogram`].
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn histogram<T: Element>(
        &self,
        input: impl Source<T>,
        bins: usize,
        lo: f64,
        hi: f64,
    ) -> Result<Vec<u64>> {
        self.count(input, bins, |n| Histogram::new(n, bins).range(lo, hi))
    }

    /// How many elements fall between neighbours of `edges`: [`Histogram::with_edges`].
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn histogram_edges<T: Element>(&self, input: impl Source<T>, edges: &[f64]) -> Result<Vec<u64>> {
        self.count(input, edges.len().saturating_sub(1), |n| Histogram::with_edges(n, edges))
    }

    fn count<T: Element>(
        &self,
        input: impl Source<T>,
        bins: usize,
        histogram: impl Fn(usize) -> Histogram,
    ) -> Result<Vec<u64>> {
        let mut input = Feed::new("histogram", input, &self.cancel);
        let left = input.announced();
        let len = self.chunk_len("histogram", left, &[T::DTYPE.size()])?;
        let count = |profile: &_, n| Op::<T>::lower(&histogram(n), profile);
        let mut plans = Plans::new(&self.gpu, len, count)?;
        let mut pipeline = self.pipeline(left, len);
        let (elements, counts) = (pipeline.input::<T>(len), pipeline.output::<u32>(bins));
        let mut all = filled("histogram", bins, 0u64)?;
        pipeline.run(
            |chunk| fill_from(chunk, elements, &mut input),
            |rec, chunk| {
                let input = chunk.input(elements)?;
                let counts = chunk.output(counts, bins)?;
                Ok(plans.get(input.len())?.record(rec, &[input.untyped(), counts.untyped()])?)
            },
            |chunk| {
                let counts = chunk.read(counts)?;
                all.iter_mut().zip(counts).for_each(|(all, n)| *all += u64::from(*n));
                Ok(())
            },
        )?;
        Ok(all)
    }

    /// The elements whose flag is not 0, in order: [`Select`].
    ///
    /// # Errors
    /// See [`Streamed`]; [`Shape`](crate::ErrorKind::Shape) if one source ends before the other.
    pub fn select<T: Element>(&self, input: impl Source<T>, flags: impl Source<u32>) -> Result<Vec<T>>
    where
        Select: Op<T>,
    {
        let size = T::DTYPE.size();
        let mut input = Feed::new("select", input, &self.cancel);
        let mut flags = Feed::new("select", flags, &self.cancel);
        let left = input.announced();
        let len = self.chunk_len("select", left, &[size, 4, size])?;
        let select = |profile: &_, n| Op::<T>::lower(&Select::new(n), profile);
        let mut plans = Plans::new(&self.gpu, len, select)?;
        let mut pipeline = self.pipeline(left, len);
        let (elements, flagged) = (pipeline.input::<T>(len), pipeline.input::<u32>(len));
        let (kept, count) = (pipeline.output::<T>(len), pipeline.output::<u32>(1));
        let mut all = Vec::new();
        pipeline.run(
            |chunk| {
                fill_from(chunk, elements, &mut input)?;
                fill_from(chunk, flagged, &mut flags)?;
                let (n, of_flags) = (chunk.space(elements)?.len(), chunk.space(flagged)?.len());
                same_length("select", n, of_flags)?;
                Ok(n > 0)
            },
            |rec, chunk| {
                let (x, flags) = (chunk.input(elements)?, chunk.input(flagged)?);
                let (kept, count) = (chunk.output(kept, x.len())?, chunk.output(count, 1)?);
                let operands = [x.untyped(), flags.untyped(), kept.untyped(), count.untyped()];
                Ok(plans.get(x.len())?.record(rec, &operands)?)
            },
            |chunk| {
                let count = chunk.read(count)?[0] as usize;
                append("select", &mut all, &chunk.read(kept)?[..count])
            },
        )?;
        Ok(all)
    }

    /// The elements of which `predicate` is true, in order: [`Select::by`].
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn select_by<T: Element>(&self, input: impl Source<T>, predicate: &Predicate) -> Result<Vec<T>>
    where
        Select: Op<T>,
    {
        let size = T::DTYPE.size();
        let mut input = Feed::new("select", input, &self.cancel);
        let left = input.announced();
        let len = self.chunk_len("select", left, &[size, size])?;
        let select = |profile: &_, n| Op::<T>::lower(&Select::by(n, predicate.clone()), profile);
        let mut plans = Plans::new(&self.gpu, len, select)?;
        let mut pipeline = self.pipeline(left, len);
        let elements = pipeline.input::<T>(len);
        let (kept, count) = (pipeline.output::<T>(len), pipeline.output::<u32>(1));
        let mut all = Vec::new();
        pipeline.run(
            |chunk| fill_from(chunk, elements, &mut input),
            |rec, chunk| {
                let x = chunk.input(elements)?;
                let (kept, count) = (chunk.output(kept, x.len())?, chunk.output(count, 1)?);
                Ok(plans.get(x.len())?.record(rec, &[x.untyped(), kept.untyped(), count.untyped()])?)
            },
            |chunk| {
                let count = chunk.read(count)?[0] as usize;
                append("select", &mut all, &chunk.read(kept)?[..count])
            },
        )?;
        Ok(all)
    }

    /// The keys in ascending order, or descending: [`RadixSort`]. The device sorts chunks, and the host merges them, on
    /// all its cores. Beside the result the host keeps as much again.
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn sort<T: SortKey>(&self, keys: impl Source<T>, descending: bool) -> Result<Vec<T>> {
        let mut keys = Feed::new("sort", keys, &self.cancel);
        let left = keys.announced();
        let len = self.chunk_len("sort", left, &[T::DTYPE.size(); 2])?;
        let sort = |profile: &_, n| Op::<T>::lower(&RadixSort::new(n).descending(descending), profile);
        let mut plans = Plans::new(&self.gpu, len, sort)?;
        let mut pipeline = self.pipeline(left, len);
        let (input, output) = (pipeline.input::<T>(len), pipeline.output::<T>(len));
        let mut sorted = with_room("sort", left.unwrap_or(0))?;
        pipeline.run(
            |chunk| fill_from(chunk, input, &mut keys),
            |rec, chunk| {
                let keys = chunk.input(input)?;
                let sorted = chunk.output(output, keys.len())?;
                Ok(plans.get(keys.len())?.record(rec, &[keys.untyped(), sorted.untyped()])?)
            },
            |chunk| append("sort", &mut sorted, chunk.read(output)?),
        )?;
        drop(pipeline);
        if sorted.len() <= len {
            return Ok(sorted);
        }
        let mut merged = filled("sort", sorted.len(), T::default())?;
        merge((&sorted, &[]), (&mut merged, &mut []), len, descending, &self.cancel)?;
        self.not_cancelled()?;
        Ok(merged)
    }

    /// As [`sort`](Self::sort), with a value that goes with each key. Equal keys keep their order.
    ///
    /// # Errors
    /// See [`Streamed`]; [`Shape`](crate::ErrorKind::Shape) if one source ends before the other.
    pub fn sort_pairs<T: SortKey>(
        &self,
        keys: impl Source<T>,
        values: impl Source<u32>,
        descending: bool,
    ) -> Result<(Vec<T>, Vec<u32>)> {
        let size = T::DTYPE.size();
        let mut keys = Feed::new("sort", keys, &self.cancel);
        let mut values = Feed::new("sort", values, &self.cancel);
        let left = keys.announced();
        let len = self.chunk_len("sort", left, &[size, size, 4, 4])?;
        let sort = |n| RadixSort::new(n).descending(descending).with_values();
        let mut plans = Plans::new(&self.gpu, len, |profile, n| Op::<T>::lower(&sort(n), profile))?;
        let mut pipeline = self.pipeline(left, len);
        let (key, value) = (pipeline.input::<T>(len), pipeline.input::<u32>(len));
        let (key_out, value_out) = (pipeline.output::<T>(len), pipeline.output::<u32>(len));
        let capacity = left.unwrap_or(0);
        let (mut sorted, mut moved) = (with_room("sort", capacity)?, with_room("sort", capacity)?);
        pipeline.run(
            |chunk| {
                fill_from(chunk, key, &mut keys)?;
                fill_from(chunk, value, &mut values)?;
                let (keys, values) = (chunk.space(key)?.len(), chunk.space(value)?.len());
                same_length("sort", keys, values)?;
                Ok(keys > 0)
            },
            |rec, chunk| {
                let (keys, values) = (chunk.input(key)?, chunk.input(value)?);
                let n = keys.len();
                let (keys_out, values_out) = (chunk.output(key_out, n)?, chunk.output(value_out, n)?);
                let operands = [keys.untyped(), values.untyped(), keys_out.untyped(), values_out.untyped()];
                Ok(plans.get(n)?.record(rec, &operands)?)
            },
            |chunk| {
                append("sort", &mut sorted, chunk.read(key_out)?)?;
                append("sort", &mut moved, chunk.read(value_out)?)
            },
        )?;
        drop(pipeline);
        if sorted.len() <= len {
            return Ok((sorted, moved));
        }
        let mut merged = filled("sort", sorted.len(), T::default())?;
        let mut beside = filled("sort", moved.len(), 0)?;
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

/// Scans of chunks, with what goes from one to the next.
enum Scans<'p, T: Element> {
    /// A word an element: a total is copied as it is.
    Words {
        scan: Plans<'p>,
        carry: Buffer<T>,
    },
    Halves(Halves<'p>),
}

impl<T: Element> Scans<'_, T> {
    /// Scans `x` into `y`; where it `carries`, the first element is the total of all chunks before.
    fn record(&mut self, rec: &mut Recorder, x: Slice<'_, T>, y: Slice<'_, T>, carries: bool) -> Result<()> {
        match self {
            Self::Words { scan, carry } => {
                if carries {
                    rec.copy(&*carry, x.slice(..1)?)?;
                }
                scan.get(x.len())?.record(rec, &[x.untyped(), y.untyped()])?;
                rec.copy(y.slice(x.len() - 1..)?, &*carry)
            }
            Self::Halves(halves) => halves.record(rec, &x.untyped(), &y.untyped(), x.len(), carries),
        }
    }
}

/// Scans of f16, of which two share a word: in f32, so that totals go from chunk to chunk without being rounded.
struct Halves<'p> {
    widen: Plans<'p>,
    scan: Plans<'p>,
    narrow: Plans<'p>,
    /// Of f32, for one chunk: elements, prefixes and the total. Chunks run one after another.
    x: Buffer<f32>,
    y: Buffer<f32>,
    carry: Buffer<f32>,
}

/// The same operator for other elements: f16 is combined in f32 anyway.
#[derive(Clone)]
struct Same(Operator);

impl Reducer<f32> for Same {
    type Output = f32;

    fn operator(&self) -> Operator {
        self.0.clone()
    }
}

impl<'p> Halves<'p> {
    fn new(gpu: &'p Gpu, operator: Operator, room: usize) -> Result<Self> {
        let op = Same(operator);
        Ok(Self {
            widen: Plans::new(gpu, room, |profile, n| Op::<f16>::lower(&Cast::new(n), profile))?,
            scan: Plans::new(gpu, room, move |profile, n| {
                Op::<f32>::lower(&Scan::new(op.clone(), n), profile)
            })?,
            narrow: Plans::new(gpu, room, |profile, n| Op::<f32>::lower(&Cast::new(n), profile))?,
            x: gpu.alloc(room)?,
            y: gpu.alloc(room)?,
            carry: gpu.alloc(1)?,
        })
    }

    fn record(
        &mut self,
        rec: &mut Recorder,
        input: &RawSlice<'_>,
        output: &RawSlice<'_>,
        n: usize,
        carries: bool,
    ) -> Result<()> {
        let (x, y) = (self.x.slice(..n)?, self.y.slice(..n)?);
        self.widen.get(n)?.record(rec, &[*input, x.untyped()])?;
        if carries {
            rec.copy(&self.carry, x.slice(..1)?)?;
        }
        self.scan.get(n)?.record(rec, &[x.untyped(), y.untyped()])?;
        rec.copy(y.slice(n - 1..)?, &self.carry)?;
        self.narrow.get(n)?.record(rec, &[y.untyped(), *output])
    }
}

/// Appends a chunk's results to those of all, if there is memory for them.
fn append<T: Copy>(op: &str, all: &mut Vec<T>, chunk: &[T]) -> Outcome {
    make_room(op, all, chunk.len())?;
    all.extend_from_slice(chunk);
    Ok(())
}

fn same_length(op: &str, a: usize, b: usize) -> Result<()> {
    if a == b {
        return Ok(());
    }
    Err(err!(
        Shape,
        "{op}: one source gave {a} elements for this chunk and the other {b}; they must have equally many"
    ))
}
