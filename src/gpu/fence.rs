//! Guards for the places where wgpu panics or stays silent: creating objects, waiting, a lost device.

use super::{Gpu, from_wgpu_error, lock};
use crate::error::{Result, err};
use futures_intrusive::channel::shared::OneshotSender;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
#[cfg(not(target_arch = "wasm32"))]
use std::time::Duration;
#[cfg(not(target_arch = "wasm32"))]
use web_time::Instant;

/// Tells a pending readback whether its buffer was mapped.
pub(super) type Notice = Arc<OneshotSender<bool>>;

/// Whether the device is known to be lost, and why.
#[derive(Debug, Default, Clone)]
pub(super) struct Health {
    lost: Arc<AtomicBool>,
    reason: Arc<Mutex<String>>,
    /// Pending readbacks: a lost device may never call back for them.
    awaited: Arc<Mutex<Vec<Weak<OneshotSender<bool>>>>>,
}

impl Health {
    /// Sets wgpu's callback only on devices that we opened, because it would replace the caller's. In a browser it
    /// replaces none.
    pub(super) fn new(device: &wgpu::Device, opened_by_us: bool) -> Self {
        let health = Self::default();
        if opened_by_us || cfg!(target_arch = "wasm32") {
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
            // wgpu may have called back already.
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
        Err(err!(DeviceLost, "the device {name} is lost ({reason}); open a new Gpu; everything on the old one is lost"))
    }
}

impl Gpu {
    /// Runs `create` inside error scopes, so that no wgpu error reaches the default handler, which panics. The
    /// scopes belong to this thread and are closed before this returns.
    ///
    /// wgpu reports nothing on a lost device, so this probes the device afterwards.
    pub(super) fn scoped<R>(&self, doing: &str, create: impl FnOnce() -> R) -> Result<R> {
        self.alive()?;
        if let Some(error) = self.inner.faults.strike(doing) {
            return Err(error);
        }
        let device = &self.inner.device;
        let scopes = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Internal]
            .map(|filter| device.push_error_scope(filter));
        let result = create();
        let ended = self.end_scopes(doing, scopes);
        // While a device goes down, wgpu may report its buffers as destroyed: the loss is what to tell of.
        self.probe()?;
        ended.map(|()| result)
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn end_scopes(&self, doing: &str, scopes: [wgpu::ErrorScopeGuard; 3]) -> Result<()> {
        let mut failure = None;
        for scope in scopes.into_iter().rev() {
            // Ready at once outside of browsers.
            failure = pollster::block_on(scope.pop()).or(failure);
        }
        failure.map_or(Ok(()), |error| Err(from_wgpu_error(doing, &error)))
    }

    /// Closes error scopes. The next asynchronous call returns the first error.
    #[cfg(target_arch = "wasm32")]
    fn end_scopes(&self, doing: &str, scopes: [wgpu::ErrorScopeGuard; 3]) -> Result<()> {
        for scope in scopes.into_iter().rev() {
            self.inner.deferred.add(doing, scope.pop());
        }
        Ok(())
    }

    /// Waits until the browser has answered for all calls so far, and returns their first error. Elsewhere each call
    /// has returned its own.
    pub(super) async fn settled(&self) -> Result<()> {
        #[cfg(target_arch = "wasm32")]
        self.inner.deferred.settled().await?;
        Ok(())
    }

    /// The one place that waits for the device.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn wait_for(&self, submission: Option<wgpu::SubmissionIndex>) -> Result<()> {
        self.poll(wgpu::PollType::Wait { submission_index: submission, timeout: None })
    }

    /// Runs wgpu's callbacks of finished work, without waiting.
    pub(super) fn poll_once(&self) -> Result<()> {
        self.poll(wgpu::PollType::Poll)
    }

    /// Runs under `catch_unwind`, because wgpu's `poll` panics if the device is lost while it waits. The device is
    /// then marked as lost, and wgpu's state is not used again.
    fn poll(&self, how: wgpu::PollType) -> Result<()> {
        self.polled(how).map(|_| ())
    }

    /// Whether all submitted work is done.
    #[cfg(all(feature = "cuda", target_os = "linux"))]
    pub(crate) fn is_idle(&self) -> Result<bool> {
        self.polled(wgpu::PollType::Poll)
    }

    fn polled(&self, how: wgpu::PollType) -> Result<bool> {
        self.probe()?;
        let name = &self.inner.profile.name;
        let polled = catch_unwind(AssertUnwindSafe(|| self.inner.device.poll(how)));
        if polled.is_err() {
            self.inner.health.mark("wgpu panicked while waiting for it");
        }
        self.probe()?;
        match polled {
            Ok(Err(e)) => Err(err!(Validation, "waiting for {name}: {e}")),
            Ok(Ok(status)) => Ok(status.is_queue_empty()),
            Err(_) => Ok(false),
        }
    }

    /// Waits until all submitted work is done. A browser has only [`wait_async`](Self::wait_async).
    ///
    /// # Errors
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost).
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait(&self) -> Result<()> {
        self.wait_for(None)
    }

    /// Waits until all submitted work is done, for at most `timeout`.
    ///
    /// # Errors
    /// [`Timeout`](crate::ErrorKind::Timeout), after which the work goes on and can be waited for again;
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost).
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait_timeout(&self, timeout: Duration) -> Result<()> {
        // wgpu's own wait panics if another thread collects the work just when the time is up.
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
                    "waiting for {}: the work is not done within the timeout; wait again or longer",
                    self.inner.profile.name
                ));
            }
            std::thread::sleep(pause.min(left));
            pause = (2 * pause).min(Duration::from_millis(1));
        }
    }

    /// Checks that the device still works. The browser tells of each loss, soon after it.
    ///
    /// # Errors
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost).
    #[cfg(target_arch = "wasm32")]
    pub fn probe(&self) -> Result<()> {
        self.alive()
    }

    /// Checks that the device still works, in half a microsecond. Finds the loss of a caller's device, whose
    /// callback belongs to the caller, and of a destroyed one.
    ///
    /// # Errors
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost).
    #[cfg(not(target_arch = "wasm32"))]
    pub fn probe(&self) -> Result<()> {
        self.alive()?;
        // A lost device reports no errors, so one that accepts an invalid buffer may be lost.
        let buffer = |usage, mapped_at_creation| {
            let desc = wgpu::BufferDescriptor { label: Some("tilework probe"), size: 16, usage, mapped_at_creation };
            let scope = self.inner.device.push_error_scope(wgpu::ErrorFilter::Validation);
            let buffer = catch_unwind(AssertUnwindSafe(|| self.inner.device.create_buffer(&desc))).ok();
            (buffer, pollster::block_on(scope.pop()).is_some())
        };
        let (_, refused) = buffer(wgpu::BufferUsages::empty(), false);
        if refused {
            return Ok(());
        }
        // A lost device cannot create a mapped buffer.
        let (possible, _) = buffer(wgpu::BufferUsages::COPY_SRC, true);
        if possible.is_none_or(|b| b.slice(..).get_mapped_range().is_err()) {
            self.inner.health.mark("it does not respond; it was destroyed, or its driver failed");
        }
        self.alive()
    }
}
