//! Chunks in flight: filling, the device's work and draining at the same time.

use super::chunk::{Chunk, Drained, Fill, Input, Output, Place, Room};
use super::timeline::{Builder, DeviceTimes, Stage, Timeline};
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result, err};
use crate::gpu::{Gpu, Port, ReadView, Recorder, Set, Ticket, WriteView};
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// What the caller's functions give back: any error stops the stream.
pub type Outcome<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Chunks in flight at the most.
const MAX_IN_FLIGHT: usize = 1024;

/// How long a waiting stream may overlook that it was cancelled.
const TICK: Duration = Duration::from_millis(2);

/// Stops a stream, from any thread. Clones are one token; it stays cancelled.
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
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks all streams that watch the token to stop: they take no further chunk, wait for what the device has been given,
    /// and give [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// An input or output as it was declared.
#[derive(Debug, Clone, Copy)]
struct Declared {
    room: Room,
    make: fn(&Gpu, usize) -> Result<Port>,
}

/// Chunked work of your own, several chunks in flight.
///
/// Each chunk is *filled* by one function, on a thread for that; its kernels are *recorded* by a second one, on the calling
/// thread; and when the device is done it is *drained* by a third one, on another thread. Chunks stay in order in each.
/// From filling to draining a chunk owns one of `in_flight` sets of buffers; with one set the stages follow one another, all
/// on the calling thread.
///
/// # Errors of the three functions
/// Any error stops the stream: no further chunk is filled, recorded or drained, what the device has been given is waited
/// for, and [`run`](Self::run) says which chunk and stage it was. An [`Error`] keeps its kind, an
/// [`io::Error`](std::io::Error) gives [`Io`](ErrorKind::Io), others [`Callback`](ErrorKind::Callback). A panic stops the
/// stream in the same way and goes on afterwards.
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
    /// At rest, between runs.
    sets: Vec<Set>,
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.sets.drain(..).for_each(Set::close);
    }
}

impl Pipeline {
    /// A pipeline of at most `in_flight` chunks at a time: 1 does one after another, 3 overlaps all that can be.
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
        let place = Place { pipeline: self.id, index: self.inputs.len() };
        let room = Room { dtype: T::DTYPE, len };
        self.inputs.push(Declared { room, make: Port::input::<T> });
        self.sets.drain(..).for_each(Set::close);
        Input(place, PhantomData)
    }

    /// Declares an output: a chunk has room for `len` elements of it.
    pub fn output<T: Element>(&mut self, len: usize) -> Output<T> {
        let place = Place { pipeline: self.id, index: self.outputs.len() };
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

    /// Bytes of device memory and staging that the pipeline holds: nothing before the first run, and the same in all.
    pub fn memory_bytes(&self) -> u64 {
        let ports = self.sets.iter().flat_map(|set| set.inputs.iter().chain(&set.outputs));
        ports.map(Port::memory_bytes).sum()
    }

    /// Runs chunks until `fill` says `false`: that there was nothing left to fill a chunk with.
    ///
    /// `record` puts kernels, and copies, into the recorder; the pipeline submits it. Buffers of the caller's that it uses
    /// may carry something from chunk to chunk: chunks run in order.
    ///
    /// # Errors
    /// Of the functions: see [`Pipeline`]. [`Cancelled`](ErrorKind::Cancelled);
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for no chunk in flight, and
    /// [`TooLarge`](ErrorKind::TooLarge) for more than 1024; those of [`Gpu::alloc`] before the first
    /// chunk, for all memory; device lost. The `Gpu` and the pipeline stay usable unless the device is lost.
    pub fn run(
        &mut self,
        fill: impl FnMut(&mut Fill<'_>) -> Outcome<bool> + Send,
        record: impl FnMut(&mut Recorder, &Chunk<'_>) -> Outcome,
        drain: impl FnMut(&Drained<'_>) -> Outcome + Send,
    ) -> Result<Timeline> {
        if self.in_flight == 0 {
            return Err(err!(
                InvalidArgument,
                "stream: 0 chunks in flight; take 1 for one after another, or 3"
            ));
        }
        if self.in_flight > MAX_IN_FLIGHT {
            return Err(err!(
                TooLarge,
                "stream: {} chunks in flight are above {MAX_IN_FLIGHT}, and each has memory of its own; 3 overlap all there is",
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
        let run = Run {
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

/// Why a run ends early.
enum Failure {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Error(e)
    }
}

/// What a function of the caller's came to; nothing if it was not called.
type Said<T> = Option<thread::Result<Outcome<T>>>;

/// A begin and an end, in seconds since the run's begin.
type Span = (f64, f64);

struct FillJob {
    set: usize,
    chunk: usize,
    views: Vec<WriteView>,
}

struct WaitJob {
    set: usize,
    chunk: usize,
    ticket: Ticket,
}

struct DrainJob {
    set: usize,
    chunk: usize,
    views: Vec<ReadView>,
    lens: Vec<usize>,
}

/// What the threads tell the one that drives them.
enum Event {
    Filled { set: usize, chunk: usize, span: Span, lens: Vec<usize>, said: Said<bool> },
    Arrived { set: usize, chunk: usize, noticed: f64, stamps: Result<Option<[f64; 4]>> },
    Drained { set: usize, chunk: usize, span: Span, said: Said<()> },
}

/// A chunk on the device.
#[derive(Debug, Clone, Default)]
struct Flight {
    submitted: f64,
    outputs: Vec<usize>,
}

struct Run {
    id: u64,
    inputs: Vec<Room>,
    outputs: Vec<Room>,
    cancel: Cancel,
    /// Set when the run has failed: the threads call no more functions.
    stop: AtomicBool,
    start: Instant,
}

impl Run {
    fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.cancel.is_cancelled()
    }

    fn bytes(rooms: &[Room], lens: &[usize]) -> Vec<u64> {
        rooms.iter().zip(lens).map(|(room, len)| (room.dtype.size() * len) as u64).collect()
    }

    fn fill(
        &self,
        chunk: usize,
        views: &mut [WriteView],
        lens: &mut [usize],
        fill: &mut dyn FnMut(&mut Fill<'_>) -> Outcome<bool>,
    ) -> thread::Result<Outcome<bool>> {
        let mut space = Fill { pipeline: self.id, number: chunk, views, rooms: &self.inputs, lens };
        catch_unwind(AssertUnwindSafe(|| fill(&mut space)))
    }

    fn drain(
        &self,
        chunk: usize,
        views: &[ReadView],
        lens: &[usize],
        drain: &mut dyn FnMut(&Drained<'_>) -> Outcome,
    ) -> thread::Result<Outcome> {
        let drained = Drained { pipeline: self.id, number: chunk, views, lens };
        catch_unwind(AssertUnwindSafe(|| drain(&drained)))
    }

    /// Records and submits a chunk.
    fn submit(
        &self,
        set: &mut Set,
        built: &mut Builder,
        chunk: usize,
        lens: &[usize],
        record: &mut dyn FnMut(&mut Recorder, &Chunk<'_>) -> Outcome,
    ) -> Result<(Ticket, Flight)> {
        let begin = self.now();
        let at = |e: Error| e.context(&format!("stream: chunk {chunk}, submit"));
        let mut rec = set.begin(&Self::bytes(&self.inputs, lens)).map_err(at)?;
        let outputs = vec![Cell::new(0); self.outputs.len()];
        let view = Chunk { pipeline: self.id, number: chunk, set, lens, outputs: &outputs };
        record(&mut rec, &view).map_err(|e| failed(chunk, "record", &*e))?;
        let outputs: Vec<usize> = outputs.into_iter().map(Cell::into_inner).collect();
        let submitted = self.now();
        let ticket = set.submit(rec, &Self::bytes(&self.outputs, &outputs)).map_err(at)?;
        built.add(chunk, Stage::Submit, (begin, self.now()));
        Ok((ticket, Flight { submitted, outputs }))
    }

    fn read_views(&self, set: &Set, lens: &[usize]) -> Result<Vec<ReadView>> {
        let bytes = Self::bytes(&self.outputs, lens);
        set.outputs.iter().zip(bytes).map(|(port, bytes)| port.read_view(bytes)).collect()
    }

    fn reset(&self, set: &Set, lens: &[usize]) -> Result<()> {
        set.reset(&Self::bytes(&self.outputs, lens))
    }

    fn cancelled(drained: usize) -> Failure {
        err!(
            Cancelled,
            "stream: cancelled; chunks are drained up to, and without, number {drained}, and nothing is under way"
        )
        .into()
    }

    /// One chunk after another, on this thread.
    fn serially(
        &self,
        set: &mut Set,
        built: &mut Builder,
        mut fill: impl FnMut(&mut Fill<'_>) -> Outcome<bool>,
        mut record: impl FnMut(&mut Recorder, &Chunk<'_>) -> Outcome,
        mut drain: impl FnMut(&Drained<'_>) -> Outcome,
    ) -> std::result::Result<(), Failure> {
        for chunk in 0.. {
            if self.stopped() {
                return Err(Self::cancelled(chunk));
            }
            let mut views = set.inputs.iter().map(Port::write_view).collect::<Result<Vec<_>>>()?;
            let mut lens = vec![0; views.len()];
            let begin = self.now();
            let said = self.fill(chunk, &mut views, &mut lens, &mut fill);
            drop(views);
            if !judged(chunk, "fill", said)? {
                break;
            }
            built.add(chunk, Stage::Fill, (begin, self.now()));
            if self.stopped() {
                return Err(Self::cancelled(chunk));
            }
            let (ticket, flight) = self.submit(set, built, chunk, &lens, &mut record)?;
            let stamps = ticket.wait().map_err(|e| e.context(&format!("stream: chunk {chunk}, device")))?;
            let Flight { submitted, outputs } = flight;
            built.device.push(DeviceTimes { chunk, submitted, noticed: self.now(), stamps });
            if self.stopped() {
                self.reset(set, &outputs)?;
                return Err(Self::cancelled(chunk));
            }
            let views = self.read_views(set, &outputs)?;
            let begin = self.now();
            let said = self.drain(chunk, &views, &outputs, &mut drain);
            drop(views);
            built.add(chunk, Stage::Drain, (begin, self.now()));
            self.reset(set, &outputs)?;
            judged(chunk, "drain", said)?;
        }
        Ok(())
    }

    /// Fills and drains on threads of their own; a third one waits for the device, since wgpu's wait cannot be left when
    /// another chunk is ready to be submitted.
    fn overlapped(
        &self,
        sets: &mut [Set],
        built: &mut Builder,
        mut fill: impl FnMut(&mut Fill<'_>) -> Outcome<bool> + Send,
        mut record: impl FnMut(&mut Recorder, &Chunk<'_>) -> Outcome,
        mut drain: impl FnMut(&Drained<'_>) -> Outcome + Send,
    ) -> std::result::Result<(), Failure> {
        thread::scope(|scope| {
            let (to_fill, filling) = mpsc::channel();
            let (to_wait, waiting) = mpsc::channel();
            let (to_drain, draining) = mpsc::channel();
            let (events, heard) = mpsc::channel();
            let start = |name: &str| thread::Builder::new().name(format!("tilework stream {name}"));
            let no_thread = |e| err!(Io, "stream: the system gives no thread: {e}");
            let tell = events.clone();
            start("fill")
                .spawn_scoped(scope, move || self.filler(&filling, &tell, &mut fill))
                .map_err(no_thread)?;
            let tell = events.clone();
            start("wait").spawn_scoped(scope, move || self.waiter(&waiting, &tell)).map_err(no_thread)?;
            start("drain")
                .spawn_scoped(scope, move || self.drainer(&draining, &events, &mut drain))
                .map_err(no_thread)?;
            let mut driver = Driver {
                run: self,
                home: (0..sets.len()).collect(),
                flights: vec![Flight::default(); sets.len()],
                sets,
                built,
                failure: None,
                ended: false,
                filled: 0,
                drained: 0,
            };
            driver.drive(&to_fill, &to_wait, &to_drain, &heard, &mut record);
            driver.failure.map_or(Ok(()), Err)
        })
    }

    fn filler(
        &self,
        jobs: &Receiver<FillJob>,
        events: &Sender<Event>,
        fill: &mut dyn FnMut(&mut Fill<'_>) -> Outcome<bool>,
    ) {
        let mut ended = false;
        for FillJob { set, chunk, mut views } in jobs {
            let mut lens = vec![0; views.len()];
            let begin = self.now();
            let called = !ended && !self.stopped();
            let said = called.then(|| self.fill(chunk, &mut views, &mut lens, fill));
            // The memory is unmapped once this is heard of.
            drop(views);
            ended |= !matches!(said, Some(Ok(Ok(true))));
            if events.send(Event::Filled { set, chunk, span: (begin, self.now()), lens, said }).is_err() {
                return;
            }
        }
    }

    fn waiter(&self, jobs: &Receiver<WaitJob>, events: &Sender<Event>) {
        for WaitJob { set, chunk, ticket } in jobs {
            let stamps = ticket.wait();
            if events.send(Event::Arrived { set, chunk, noticed: self.now(), stamps }).is_err() {
                return;
            }
        }
    }

    fn drainer(
        &self,
        jobs: &Receiver<DrainJob>,
        events: &Sender<Event>,
        drain: &mut dyn FnMut(&Drained<'_>) -> Outcome,
    ) {
        let mut failed = false;
        for DrainJob { set, chunk, views, lens } in jobs {
            let begin = self.now();
            let called = !failed && !self.stopped();
            let said = called.then(|| self.drain(chunk, &views, &lens, drain));
            drop(views);
            failed |= !matches!(said, Some(Ok(Ok(()))));
            if events.send(Event::Drained { set, chunk, span: (begin, self.now()), said }).is_err() {
                return;
            }
        }
    }
}

/// The state of a run with several sets. Each set is at home, or one event will bring it further.
struct Driver<'r> {
    run: &'r Run,
    sets: &'r mut [Set],
    built: &'r mut Builder,
    home: Vec<usize>,
    flights: Vec<Flight>,
    failure: Option<Failure>,
    /// Whether there is nothing left to fill chunks with.
    ended: bool,
    /// Chunks handed out to be filled.
    filled: usize,
    drained: usize,
}

impl Driver<'_> {
    fn drive(
        &mut self,
        to_fill: &Sender<FillJob>,
        to_wait: &Sender<WaitJob>,
        to_drain: &Sender<DrainJob>,
        heard: &Receiver<Event>,
        record: &mut dyn FnMut(&mut Recorder, &Chunk<'_>) -> Outcome,
    ) {
        loop {
            if self.run.cancel.is_cancelled() && !(self.ended && self.home.len() == self.sets.len()) {
                self.fail(Run::cancelled(self.drained));
            }
            while let (false, None, Some(set)) = (self.ended, &self.failure, self.home.last().copied()) {
                let views = self.sets[set].inputs.iter().map(Port::write_view).collect::<Result<Vec<_>>>();
                match views {
                    Ok(views) => {
                        self.home.pop();
                        // The threads live as long as their senders.
                        let _ = to_fill.send(FillJob { set, chunk: self.filled, views });
                        self.filled += 1;
                    }
                    Err(e) => self.fail(e),
                }
            }
            if self.home.len() == self.sets.len() {
                return;
            }
            match heard.recv_timeout(TICK) {
                Ok(event) => {
                    if let Err(failure) = self.take(event, to_wait, to_drain, record) {
                        self.fail(failure);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn fail(&mut self, failure: impl Into<Failure>) {
        self.run.stop.store(true, Ordering::Release);
        self.failure.get_or_insert(failure.into());
    }

    fn take(
        &mut self,
        event: Event,
        to_wait: &Sender<WaitJob>,
        to_drain: &Sender<DrainJob>,
        record: &mut dyn FnMut(&mut Recorder, &Chunk<'_>) -> Outcome,
    ) -> std::result::Result<(), Failure> {
        match event {
            Event::Filled { set, chunk, span, lens, said } => {
                // It goes home unless it is submitted.
                self.home.push(set);
                let Some(said) = said else {
                    return if self.ended { Ok(()) } else { Err(Run::cancelled(self.drained)) };
                };
                if !judged(chunk, "fill", said)? {
                    self.ended = true;
                    return Ok(());
                }
                self.built.add(chunk, Stage::Fill, span);
                if self.run.stopped() {
                    return Err(Run::cancelled(self.drained));
                }
                let submitted = self.run.submit(&mut self.sets[set], self.built, chunk, &lens, record);
                let (ticket, flight) = submitted?;
                self.home.pop();
                self.flights[set] = flight;
                let _ = to_wait.send(WaitJob { set, chunk, ticket });
            }
            Event::Arrived { set, chunk, noticed, stamps } => {
                let Flight { submitted, outputs } = std::mem::take(&mut self.flights[set]);
                self.home.push(set);
                let stamps = stamps.map_err(|e| e.context(&format!("stream: chunk {chunk}, device")))?;
                self.built.device.push(DeviceTimes { chunk, submitted, noticed, stamps });
                if self.run.stopped() {
                    self.run.reset(&self.sets[set], &outputs)?;
                    return Err(Run::cancelled(self.drained));
                }
                let views = self.run.read_views(&self.sets[set], &outputs)?;
                self.home.pop();
                self.flights[set].outputs.clone_from(&outputs);
                let _ = to_drain.send(DrainJob { set, chunk, views, lens: outputs });
            }
            Event::Drained { set, chunk, span, said } => {
                self.home.push(set);
                self.run.reset(&self.sets[set], &self.flights[set].outputs)?;
                let Some(said) = said else { return Err(Run::cancelled(self.drained)) };
                judged(chunk, "drain", said)?;
                self.built.add(chunk, Stage::Drain, span);
                self.drained += 1;
            }
        }
        Ok(())
    }
}

/// What a function of the caller's came to, with chunk and stage in its error.
fn judged<T>(chunk: usize, stage: &str, said: thread::Result<Outcome<T>>) -> std::result::Result<T, Failure> {
    match said {
        Ok(outcome) => outcome.map_err(|e| failed(chunk, stage, &*e).into()),
        Err(panic) => Err(Failure::Panic(panic)),
    }
}

fn failed(chunk: usize, stage: &str, error: &(dyn std::error::Error + Send + Sync + 'static)) -> Error {
    let kind = match (error.downcast_ref::<Error>(), error.is::<std::io::Error>()) {
        (Some(e), _) => e.kind(),
        (None, true) => ErrorKind::Io,
        (None, false) => ErrorKind::Callback,
    };
    Error::new(kind, format!("stream: chunk {chunk}, {stage}: {error}"))
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(e) => e.fmt(f),
            Self::Panic(_) => f.write_str("Panic"),
        }
    }
}
