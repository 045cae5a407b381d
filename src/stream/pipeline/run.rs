//! The stages of a chunk, and runs of one chunk at a time.

use crate::gpu::{Port, ReadView, Recorder, Set, Ticket, WriteView};
use crate::program::prelude::*;
use crate::stream::chunk::{Chunk, Drained, Fill, Room};
use crate::stream::pipeline::{Cancel, Outcome};
use crate::stream::timeline::{Builder, DeviceTimes, Stage};
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Why a run ended early.
pub(super) enum Failure {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Error(e)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(e) => e.fmt(f),
            Self::Panic(_) => f.write_str("Panic"),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Flight {
    pub(super) submitted: f64,
    pub(super) outputs: Vec<usize>,
}

pub(super) struct PipelineRun {
    pub(super) id: u64,
    pub(super) inputs: Vec<Room>,
    pub(super) outputs: Vec<Room>,
    pub(super) cancel: Cancel,
    /// Set when the run fails: the threads then call no more functions.
    pub(super) stop: AtomicBool,
    pub(super) start: Instant,
}

impl PipelineRun {
    pub(super) fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.cancel.is_cancelled()
    }

    fn bytes(rooms: &[Room], lens: &[usize]) -> Vec<u64> {
        rooms.iter().zip(lens).map(|(room, len)| (room.dtype.size() * len) as u64).collect()
    }

    pub(super) fn fill(
        &self, chunk: usize, views: &mut [WriteView], lens: &mut [usize],
        fill: &mut dyn FnMut(&mut Fill<'_>) -> Outcome<bool>,
    ) -> thread::Result<Outcome<bool>> {
        let mut space = Fill { pipeline: self.id, number: chunk, views, rooms: &self.inputs, lens };
        catch_unwind(AssertUnwindSafe(|| fill(&mut space)))
    }

    pub(super) fn drain(
        &self, chunk: usize, views: &[ReadView], lens: &[usize], drain: &mut dyn FnMut(&Drained<'_>) -> Outcome,
    ) -> thread::Result<Outcome> {
        let drained = Drained { pipeline: self.id, number: chunk, views, lens };
        catch_unwind(AssertUnwindSafe(|| drain(&drained)))
    }

    pub(super) fn submit(
        &self, set: &mut Set, built: &mut Builder, chunk: usize, lens: &[usize],
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

    pub(super) fn write_views(set: &Set) -> Result<Vec<WriteView>> {
        set.inputs.iter().map(Port::write_view).collect()
    }

    /// Maps a finished chunk's outputs for reading, unless the run was stopped after `drained` chunks.
    pub(super) fn arrived(
        &self, set: &Set, built: &mut Builder, times: DeviceTimes, lens: &[usize], drained: usize,
    ) -> std::result::Result<Vec<ReadView>, Failure> {
        built.device.push(times);
        if self.stopped() {
            self.reset(set, lens)?;
            return Err(Self::cancelled(drained));
        }
        let bytes = Self::bytes(&self.outputs, lens);
        let views: Result<_> = set.outputs.iter().zip(bytes).map(|(port, bytes)| port.read_view(bytes)).collect();
        Ok(views?)
    }

    pub(super) fn reset(&self, set: &Set, lens: &[usize]) -> Result<()> {
        set.reset(&Self::bytes(&self.outputs, lens))
    }

    pub(super) fn cancelled(drained: usize) -> Failure {
        err!(Cancelled, "stream: cancelled after draining {drained} chunks; no work is under way").into()
    }

    /// Runs one chunk after another on this thread.
    pub(super) fn serially(
        &self, set: &mut Set, built: &mut Builder, mut fill: impl FnMut(&mut Fill<'_>) -> Outcome<bool>,
        mut record: impl FnMut(&mut Recorder, &Chunk<'_>) -> Outcome, mut drain: impl FnMut(&Drained<'_>) -> Outcome,
    ) -> std::result::Result<(), Failure> {
        for chunk in 0.. {
            if self.stopped() {
                return Err(Self::cancelled(chunk));
            }
            let mut views = Self::write_views(set)?;
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
            let stamps = ticket.wait();
            let Flight { submitted, outputs } = flight;
            let times = DeviceTimes { chunk, submitted, noticed: self.now(), stamps: stamped(chunk, stamps)? };
            let views = self.arrived(set, built, times, &outputs, chunk)?;
            let begin = self.now();
            let said = self.drain(chunk, &views, &outputs, &mut drain);
            drop(views);
            built.add(chunk, Stage::Drain, (begin, self.now()));
            self.reset(set, &outputs)?;
            judged(chunk, "drain", said)?;
        }
        Ok(())
    }
}

/// Adds the chunk's number to an error of its device times.
pub(super) fn stamped<T>(chunk: usize, stamps: Result<T>) -> Result<T> {
    stamps.map_err(|e| e.context(&format!("stream: chunk {chunk}, device")))
}

/// Adds chunk and stage to an error of a caller's function.
pub(super) fn judged<T>(
    chunk: usize, stage: &str, said: thread::Result<Outcome<T>>,
) -> std::result::Result<T, Failure> {
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
