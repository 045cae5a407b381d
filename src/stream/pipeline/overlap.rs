//! Runs several chunks at the same time: one thread fills, one waits for the device, one drains, and the caller's
//! thread drives them.

use super::run::{Failure, Flight, PipelineRun, judged, stamped};
use crate::error::{Result, err};
use crate::gpu::{ReadView, Recorder, Set, Ticket, WriteView};
use crate::stream::chunk::{Chunk, Drained, Fill};
use crate::stream::pipeline::Outcome;
use crate::stream::timeline::{Builder, DeviceTimes, Stage};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Maximum delay before a waiting stream notices that it was cancelled.
const TICK: Duration = Duration::from_millis(2);

/// The result of a caller's function; `None` if it was not called.
type Said<T> = Option<thread::Result<Outcome<T>>>;

/// Begin and end, in seconds since the run began.
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

/// Messages of the threads to the driver.
enum ThreadEvent {
    Filled { set: usize, chunk: usize, span: Span, lens: Vec<usize>, said: Said<bool> },
    Arrived { set: usize, chunk: usize, noticed: f64, stamps: Result<Option<[f64; 4]>> },
    Drained { set: usize, chunk: usize, span: Span, said: Said<()> },
}

impl PipelineRun {
    /// Fills and drains on their own threads. A third thread waits for the device, because wgpu's wait cannot be
    /// interrupted when another chunk is ready to submit.
    pub(super) fn overlapped(
        &self, sets: &mut [Set], built: &mut Builder, mut fill: impl FnMut(&mut Fill<'_>) -> Outcome<bool> + Send,
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
            start("fill").spawn_scoped(scope, move || self.filler(&filling, &tell, &mut fill)).map_err(no_thread)?;
            let tell = events.clone();
            start("wait").spawn_scoped(scope, move || self.waiter(&waiting, &tell)).map_err(no_thread)?;
            start("drain")
                .spawn_scoped(scope, move || self.drainer(&draining, &events, &mut drain))
                .map_err(no_thread)?;
            let mut driver = ChunkDriver {
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
        &self, jobs: &Receiver<FillJob>, events: &Sender<ThreadEvent>,
        fill: &mut dyn FnMut(&mut Fill<'_>) -> Outcome<bool>,
    ) {
        let mut ended = false;
        for FillJob { set, chunk, mut views } in jobs {
            let mut lens = vec![0; views.len()];
            let begin = self.now();
            let called = !ended && !self.stopped();
            let said = called.then(|| self.fill(chunk, &mut views, &mut lens, fill));
            // Unmap before reporting.
            drop(views);
            ended |= !matches!(said, Some(Ok(Ok(true))));
            if events.send(ThreadEvent::Filled { set, chunk, span: (begin, self.now()), lens, said }).is_err() {
                return;
            }
        }
    }

    fn waiter(&self, jobs: &Receiver<WaitJob>, events: &Sender<ThreadEvent>) {
        for WaitJob { set, chunk, ticket } in jobs {
            let stamps = ticket.wait();
            if events.send(ThreadEvent::Arrived { set, chunk, noticed: self.now(), stamps }).is_err() {
                return;
            }
        }
    }

    fn drainer(
        &self, jobs: &Receiver<DrainJob>, events: &Sender<ThreadEvent>, drain: &mut dyn FnMut(&Drained<'_>) -> Outcome,
    ) {
        let mut failed = false;
        for DrainJob { set, chunk, views, lens } in jobs {
            let begin = self.now();
            let called = !failed && !self.stopped();
            let said = called.then(|| self.drain(chunk, &views, &lens, drain));
            drop(views);
            failed |= !matches!(said, Some(Ok(Ok(()))));
            if events.send(ThreadEvent::Drained { set, chunk, span: (begin, self.now()), said }).is_err() {
                return;
            }
        }
    }
}

/// The state of a run with several sets. Each set is idle, or an event will advance it.
struct ChunkDriver<'r> {
    run: &'r PipelineRun,
    sets: &'r mut [Set],
    built: &'r mut Builder,
    home: Vec<usize>,
    flights: Vec<Flight>,
    failure: Option<Failure>,
    /// Whether the caller has no more chunks.
    ended: bool,
    /// Chunks sent to be filled.
    filled: usize,
    drained: usize,
}

impl ChunkDriver<'_> {
    fn drive(
        &mut self, to_fill: &Sender<FillJob>, to_wait: &Sender<WaitJob>, to_drain: &Sender<DrainJob>,
        heard: &Receiver<ThreadEvent>, record: &mut dyn FnMut(&mut Recorder, &Chunk<'_>) -> Outcome,
    ) {
        loop {
            if self.run.cancel.is_cancelled() && !(self.ended && self.home.len() == self.sets.len()) {
                self.fail(PipelineRun::cancelled(self.drained));
            }
            while let (false, None, Some(set)) = (self.ended, &self.failure, self.home.last().copied()) {
                let views = PipelineRun::write_views(&self.sets[set]);
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
        &mut self, event: ThreadEvent, to_wait: &Sender<WaitJob>, to_drain: &Sender<DrainJob>,
        record: &mut dyn FnMut(&mut Recorder, &Chunk<'_>) -> Outcome,
    ) -> std::result::Result<(), Failure> {
        match event {
            ThreadEvent::Filled { set, chunk, span, lens, said } => {
                // The set is idle again unless it is submitted.
                self.home.push(set);
                let Some(said) = said else {
                    return if self.ended { Ok(()) } else { Err(PipelineRun::cancelled(self.drained)) };
                };
                if !judged(chunk, "fill", said)? {
                    self.ended = true;
                    return Ok(());
                }
                self.built.add(chunk, Stage::Fill, span);
                if self.run.stopped() {
                    return Err(PipelineRun::cancelled(self.drained));
                }
                let submitted = self.run.submit(&mut self.sets[set], self.built, chunk, &lens, record);
                let (ticket, flight) = submitted?;
                self.home.pop();
                self.flights[set] = flight;
                let _ = to_wait.send(WaitJob { set, chunk, ticket });
            }
            ThreadEvent::Arrived { set, chunk, noticed, stamps } => {
                let Flight { submitted, outputs } = std::mem::take(&mut self.flights[set]);
                self.home.push(set);
                let times = DeviceTimes { chunk, submitted, noticed, stamps: stamped(chunk, stamps)? };
                let views = self.run.arrived(&self.sets[set], self.built, times, &outputs, self.drained)?;
                self.home.pop();
                self.flights[set].outputs.clone_from(&outputs);
                let _ = to_drain.send(DrainJob { set, chunk, views, lens: outputs });
            }
            ThreadEvent::Drained { set, chunk, span, said } => {
                self.home.push(set);
                self.run.reset(&self.sets[set], &self.flights[set].outputs)?;
                let Some(said) = said else { return Err(PipelineRun::cancelled(self.drained)) };
                judged(chunk, "drain", said)?;
                self.built.add(chunk, Stage::Drain, span);
                self.drained += 1;
            }
        }
        Ok(())
    }
}
