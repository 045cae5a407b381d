//! When a device was busy, on the host's clock.

use super::{Gpu, lock};
use crate::error::{Result, err};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Seconds at which a submission was made and seen to be done.
type Submission = (f64, f64);

/// Somebody who watches: submissions since then.
#[derive(Debug)]
pub(super) struct Watched {
    begin: Instant,
    submissions: Arc<Mutex<Vec<Submission>>>,
}

/// A device that is watched; a thread of its own asks the driver what is done.
#[derive(Debug)]
pub(crate) struct Watch {
    gpu: Gpu,
    ended: Arc<AtomicBool>,
    submissions: Arc<Mutex<Vec<Submission>>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Gpu {
    /// Notes when submissions are made and done, in seconds since `begin`.
    pub(crate) fn watch(&self, begin: Instant) -> Result<Watch> {
        /// How often the thread asks.
        const PAUSE: Duration = Duration::from_micros(20);
        let submissions = Arc::new(Mutex::new(Vec::new()));
        lock(&self.inner.watched).push(Watched { begin, submissions: submissions.clone() });
        let ended = Arc::new(AtomicBool::new(false));
        let (gpu, seen) = (self.clone(), ended.clone());
        let thread = std::thread::Builder::new().name("tilework watch".into()).spawn(move || {
            while !seen.load(Ordering::Acquire) && gpu.poll_once().is_ok() {
                std::thread::sleep(PAUSE);
            }
        });
        // Dropped on failure, so that the list forgets it.
        let mut watch = Watch { gpu: self.clone(), ended, submissions, thread: None };
        watch.thread = Some(thread.map_err(|e| err!(Io, "watching a device: {e}"))?);
        Ok(watch)
    }

    pub(super) fn note_submission(&self) {
        for Watched { begin, submissions } in lock(&self.inner.watched).iter() {
            let (begin, submitted, list) = (*begin, begin.elapsed().as_secs_f64(), submissions.clone());
            self.inner.queue.on_submitted_work_done(move || {
                lock(&list).push((submitted, begin.elapsed().as_secs_f64()));
            });
        }
    }

    /// Submits nothing, and calls `done` with the seconds since `begin` when all work before it is done.
    pub(crate) fn when_done(&self, begin: Instant, done: impl FnOnce(f64) + Send + 'static) -> Result<()> {
        self.scoped("submitting", || self.inner.queue.submit([]))?;
        self.inner.queue.on_submitted_work_done(move || done(begin.elapsed().as_secs_f64()));
        Ok(())
    }
}

impl Watch {
    /// Waits for the device, and returns when it was busy: spans in order, which do not overlap. A submission counts
    /// from the end of the one before, or from when it was made.
    pub(crate) fn end(self) -> Result<Vec<Submission>> {
        self.gpu.wait()?;
        let mut all = std::mem::take(&mut *lock(&self.submissions));
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut last = 0f64;
        for (begin, end) in &mut all {
            *begin = begin.max(last);
            last = last.max(*end);
        }
        all.retain(|(begin, end)| begin < end);
        Ok(all)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.gpu.inner.watched).retain(|w| !Arc::ptr_eq(&w.submissions, &self.submissions));
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It returns nothing.
            let _ = thread.join();
        }
    }
}
