//! Fences around the places where wgpu panics or keeps quiet: creation, waiting, a lost device.

use super::{Gpu, from_wgpu_error, lock};
use crate::error::{Result, err};
use futures_intrusive::channel::shared::OneshotSender;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// Tells a readback that somebody awaits whether its buffer was mapped.
pub(super) type Notice = Arc<OneshotSender<bool>>;

/// Whether the device is known to be lost, and why.
#[derive(Debug, Default, Clone)]
pub(super) struct Health {
    lost: Arc<AtomicBool>,
    reason: Arc<Mutex<String>>,
    /// Readbacks under way: a lost device may never call back for them.
    awaited: Arc<Mutex<Vec<Weak<OneshotSender<bool>>>>>,
}

impl Health {
    /// Sets wgpu's callback only on devices that we opened: it would replace a caller's own.
    pub(super) fn new(device: &wgpu::Device, opened_by_us: bool) -> Self {
        let health = Self::default();
        if opened_by_us {
            let seen = health.clone();
            device.set_device_lost_callback(move |reason, text| seen.mark(&format!("{reason:?} {text}")));
        }
        health
    }

    fn mark(&self, reason: &str) {
        let mut first = lock(&self.reason);
        if !self.lost.load(Ordering::Acquire) {
            *first = reason.trim().to_owned();
            self.lost.store(true, Ordering::Release);
        }
        drop(first);
        let awaited = std::mem::take(&mut *lock(&self.awaited));
        for notice in awaited.into_iter().filter_map(|n| n.upgrade()) {
            // Sent already if wgpu has called back.
            let _ = notice.send(false);
        }
    }

    /// Sends `false` to `notice` when the device is lost.
    pub(super) fn watch(&self, notice: &Notice) {
        let mut awaited = lock(&self.awaited);
        if awaited.len() == awaited.capacity() {
            awaited.retain(|n| n.strong_count() > 0);
        }
        awaited.push(Arc::downgrade(notice));
        drop(awaited);
        if self.lost.load(Ordering::Acquire) {
            let _ = notice.send(false);
        }
    }

    pub(super) fn check(&self, name: &str) -> Result<()> {
        if !self.lost.load(Ordering::Acquire) {
            return Ok(());
        }
        let reason = lock(&self.reason).clone();
        Err(err!(
            DeviceLost,
            "the device {name} is lost ({reason}); open a new Gpu, everything on the old one is gone"
        ))
    }
}

impl Gpu {
    /// Runs `create` inside error scopes, so that no wgpu error reaches the default handler, which
    /// panics. The scopes belong to this thread and are closed before this returns.
    ///
    /// On a lost device wgpu reports nothing, so a sign of life is asked for afterwards.
    pub(super) fn scoped<R>(&self, doing: &str, create: impl FnOnce() -> R) -> Result<R> {
        self.alive()?;
        if let Some(error) = self.inner.faults.strike(doing) {
            return Err(error);
        }
        let device = &self.inner.device;
        let scopes =
            [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Internal]
                .map(|filter| device.push_error_scope(filter));
        let result = create();
        let mut failure = None;
        for scope in scopes.into_iter().rev() {
            // Ready at once outside of browsers.
            failure = pollster::block_on(scope.pop()).or(failure);
        }
        self.probe()?;
        failure.map_or(Ok(result), |error| Err(from_wgpu_error(doing, &error)))
    }

    /// The one place that waits for the device.
    pub(super) fn wait_for(&self, submission: Option<wgpu::SubmissionIndex>) -> Result<()> {
        self.poll(wgpu::PollType::Wait { submission_index: submission, timeout: None })
    }

    /// Lets wgpu run callbacks of work that is done, without waiting.
    pub(super) fn poll_once(&self) -> Result<()> {
        self.poll(wgpu::PollType::Poll)
    }

    /// wgpu's `poll` panics on a device that is lost while it waits, so it runs under `catch_unwind`
    /// here; wgpu's state is not used again after such a panic, since the device is marked as lost.
    fn poll(&self, how: wgpu::PollType) -> Result<()> {
        self.probe()?;
        let name = &self.inner.profile.name;
        let polled = catch_unwind(AssertUnwindSafe(|| self.inner.device.poll(how)));
        if polled.is_err() {
            self.inner.health.mark("wgpu panicked while waiting for it");
        }
        self.probe()?;
        match polled {
            Ok(Err(e)) => Err(err!(Validation, "waiting for {name}: {e}")),
            _ => Ok(()),
        }
    }

    /// Waits until all submitted work is done.
    ///
    /// # Errors
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost).
    pub fn wait(&self) -> Result<()> {
        self.wait_for(None)
    }

    /// Waits until all submitted work is done, for at most `timeout`.
    ///
    /// # Errors
    /// [`Timeout`](crate::ErrorKind::Timeout), after which the work goes on and can be waited for
    /// again; [`DeviceLost`](crate::ErrorKind::DeviceLost).
    pub fn wait_timeout(&self, timeout: Duration) -> Result<()> {
        // wgpu's own wait panics if another thread collects the work in the moment in which the time is up.
        let Some(end) = Instant::now().checked_add(timeout) else { return self.wait() };
        let done = Arc::new(AtomicBool::new(false));
        let seen = done.clone();
        self.alive()?;
        self.inner.queue.on_submitted_work_done(move || seen.store(true, Ordering::Release));
        let mut pause = Duration::from_micros(10);
        loop {
            self.poll_once()?;
            if done.load(Ordering::Acquire) {
                return Ok(());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(err!(
                    Timeout,
                    "waiting for {}: the work is not done within the time given; wait again or give it more",
                    self.inner.profile.name
                ));
            }
            std::thread::sleep(pause.min(left));
            pause = (2 * pause).min(Duration::from_millis(1));
        }
    }

    /// Asks the device for a sign of life, in half a microsecond. Finds the loss of a caller's device,
    /// whose callback we leave alone, and of one that was destroyed.
    ///
    /// # Errors
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost).
    pub fn probe(&self) -> Result<()> {
        self.alive()?;
        // WebGPU reports no errors on a lost device: one that lets an impossible buffer pass is suspect.
        let buffer = |usage, mapped_at_creation| {
            let desc =
                wgpu::BufferDescriptor { label: Some("tilework probe"), size: 16, usage, mapped_at_creation };
            let scope = self.inner.device.push_error_scope(wgpu::ErrorFilter::Validation);
            let buffer = catch_unwind(AssertUnwindSafe(|| self.inner.device.create_buffer(&desc))).ok();
            (buffer, pollster::block_on(scope.pop()).is_some())
        };
        let (_, refused) = buffer(wgpu::BufferUsages::empty(), false);
        if refused {
            return Ok(());
        }
        // A buffer that is created mapped cannot be had from a lost device.
        let (possible, _) = buffer(wgpu::BufferUsages::COPY_SRC, true);
        if possible.is_none_or(|b| b.slice(..).get_mapped_range().is_err()) {
            self.inner.health.mark("it answers no more; it was destroyed, or its driver gave up");
        }
        self.alive()
    }
}
