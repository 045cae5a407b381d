//! Chunks in flight: filling, the device's work and draining at the same time.

mod overlap;
mod run;

use super::chunk::{Chunk, Drained, Fill, Input, OperandPlace, Output, Room};
use super::timeline::{Builder, Timeline};
use crate::gpu::{Gpu, Port, Recorder, Set};
use crate::program::prelude::*;
use run::{Failure, PipelineRun};
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// The result of the caller's functions. Any error stops the stream.
pub type Outcome<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Maximum chunks in flight.
const MAX_IN_FLIGHT: usize = 1024;

/// Cancels streams, from any thread. Clones share one token, which stays cancelled.
///
/// ```
/// let cancel = tilework::stream::Cancel::new();
/// let other = cancel.clone();
/// std::thread::spawn(move || other.cancel()).join().unwrap();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Makes a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops all streams that watch the token: they take no further chunk, wait for submitted work, and return
    /// [`ErrorKind::Cancelled`].
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns whether any clone was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[derive(Debug, Clone, Copy)]
struct Declared {
    room: Room,
    make: fn(&Gpu, usize) -> Result<Port>,
}

/// Runs your own work in chunks, with several chunks in flight.
///
/// One function *fills* each chunk, on a thread of its own. A second *records* its kernels, on the calling thread. A
/// third *drains* it when the device is done, on another thread. Each handles the chunks in order. From filling to
/// draining a chunk owns one of `in_flight` sets of buffers. With one set the stages run one after another on the
/// calling thread.
///
/// # Errors of the three functions
/// Any error stops the stream: no further chunk is filled, recorded or drained, submitted work is waited for, and the
/// error of [`run`](Self::run) names the chunk and the stage. An [`Error`] keeps its kind, an
/// [`io::Error`](std::io::Error) gives [`Io`](ErrorKind::Io), others [`Callback`](ErrorKind::Callback).
/// A panic stops the stream in the same way and goes on afterwards.
///
/// # Example
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::stream::Pipeline;
///
/// let gpu = Gpu::new()?;
/// let (a, b) = (vec![1.0f32; 10_000], vec![2.0f32; 10_000]);
/// let mut sums = Vec::new();
///
/// let mut pipeline = Pipeline::new(&gpu, 3);
/// let (x, y) = (pipeline.input::<f32>(4096), pipeline.input::<f32>(4096));
/// let z = pipeline.output::<f32>(4096);
/// let mut chunks = a.chunks(4096).zip(b.chunks(4096));
/// let timeline = pipeline.run(
///     |chunk| {
///         let Some((a, b)) = chunks.next() else { return Ok(false) };
///         chunk.write(x, a)?;
///         chunk.write(y, b)?;
///         Ok(true)
///     },
///     |rec, chunk| {
///         let (x, y) = (chunk.input(x)?, chunk.input(y)?);
///         let add = Zip::new(ZipFn::Add, x.len()).plan::<f32>(&gpu)?;
///         Ok(add.record(rec, x, y, chunk.output(z, x.len())?)?)
///     },
///     |chunk| Ok(sums.extend_from_slice(chunk.read(z)?)),
/// )?;
/// assert_eq!(sums, vec![3.0; 10_000]);
/// assert_eq!(timeline.chunks, 3);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug)]
pub struct Pipeline {
    gpu: Gpu,
    id: u64,
    in_flight: usize,
    inputs: Vec<Declared>,
    outputs: Vec<Declared>,
    cancel: Cancel,
    /// The sets of buffers, between runs.
    sets: Vec<Set>,
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.sets.drain(..).for_each(Set::close);
    }
}

impl Pipeline {
    /// Makes a pipeline with at most `in_flight` chunks at a time: 1 runs them one after another, 3 overlaps all
    /// stages.
    pub fn new(gpu: &Gpu, in_flight: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            gpu: gpu.clone(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            in_flight,
            inputs: Vec::new(),
            outputs: Vec::new(),
            cancel: Cancel::new(),
            sets: Vec::new(),
        }
    }

    /// Declares an input: a chunk has room for `len` elements of it.
    pub fn input<T: Element>(&mut self, len: usize) -> Input<T> {
        let place = OperandPlace { pipeline: self.id, index: self.inputs.len() };
        let room = Room { dtype: T::DTYPE, len };
        self.inputs.push(Declared { room, make: Port::input::<T> });
        self.sets.drain(..).for_each(Set::close);
        Input(place, PhantomData)
    }

    /// Declares an output: a chunk has room for `len` elements of it.
    pub fn output<T: Element>(&mut self, len: usize) -> Output<T> {
        let place = OperandPlace { pipeline: self.id, index: self.outputs.len() };
        let room = Room { dtype: T::DTYPE, len };
        self.outputs.push(Declared { room, make: Port::output::<T> });
        self.sets.drain(..).for_each(Set::close);
        Output(place, PhantomData)
    }

    /// Stops runs when this token is cancelled.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Returns the bytes of device memory and staging that the pipeline holds: 0 before the first run, then constant.
    pub fn memory_bytes(&self) -> u64 {
        let ports = self.sets.iter().flat_map(|set| set.inputs.iter().chain(&set.outputs));
        ports.map(Port::memory_bytes).sum()
    }

    /// Runs chunks until `fill` returns `false`, because nothing is left to fill a chunk with.
    ///
    /// `record` records kernels and copies; the pipeline submits them. Chunks run in order, so the caller's buffers may
    /// carry values from chunk to chunk.
    ///
    /// # Errors
    /// Those of the functions: see [`Pipeline`]. [`Cancelled`](ErrorKind::Cancelled);
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for no chunk in flight, and
    /// [`TooLarge`](ErrorKind::TooLarge) for more than 1024; those of [`Gpu::alloc`] before the first
    /// chunk, for all memory; device lost. The `Gpu` and the pipeline stay usable unless the device is lost.
    pub fn run(
        &mut self, fill: impl FnMut(&mut Fill<'_>) -> Outcome<bool> + Send,
        record: impl FnMut(&mut Recorder, &Chunk<'_>) -> Outcome, drain: impl FnMut(&Drained<'_>) -> Outcome + Send,
    ) -> Result<Timeline> {
        if self.in_flight == 0 {
            return Err(err!(
                InvalidArgument,
                "stream: 0 chunks in flight; use 1 to run them one after another, or 3 to overlap"
            ));
        }
        if self.in_flight > MAX_IN_FLIGHT {
            return Err(err!(
                TooLarge,
                "stream: {} chunks in flight exceed the maximum of {MAX_IN_FLIGHT}; each takes memory of its own, and 3 \
                 overlap all stages",
                self.in_flight
            ));
        }
        let mut sets = std::mem::take(&mut self.sets);
        while sets.len() < self.in_flight {
            match self.allocate() {
                Ok(set) => sets.push(set),
                Err(e) => {
                    sets.into_iter().for_each(Set::close);
                    return Err(e);
                }
            }
        }
        let rooms = |declared: &[Declared]| declared.iter().map(|d| d.room).collect();
        let run = PipelineRun {
            id: self.id,
            inputs: rooms(&self.inputs),
            outputs: rooms(&self.outputs),
            cancel: self.cancel.clone(),
            stop: AtomicBool::new(false),
            start: Instant::now(),
        };
        let mut built = Builder::default();
        let ended = if let [set] = &mut sets[..] {
            run.serially(set, &mut built, fill, record, drain)
        } else {
            run.overlapped(&mut sets, &mut built, fill, record, drain)
        };
        match ended {
            Ok(()) => {
                let copies = sets.iter().any(Set::copies);
                self.sets = sets;
                Ok(built.finish(run.now(), copies))
            }
            Err(failure) => {
                sets.into_iter().for_each(Set::close);
                match failure {
                    Failure::Error(e) => Err(e),
                    Failure::Panic(panic) => resume_unwind(panic),
                }
            }
        }
    }

    fn allocate(&self) -> Result<Set> {
        let ports = |declared: &[Declared]| -> Result<Vec<Port>> {
            declared.iter().map(|d| (d.make)(&self.gpu, d.room.len)).collect()
        };
        Set::new(&self.gpu, ports(&self.inputs)?, ports(&self.outputs)?)
    }
}
