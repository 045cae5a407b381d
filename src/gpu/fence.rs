//! Fences around the places where wgpu panics or keeps quiet: creation, waiting, a lost device.

use super::{Gpu, from_wgpu_error, lock};
use crate::error::{Result, err};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Whether the device is known to be lost, and why.
#[derive(Debug, Default, Clone)]
pub(super) struct Health {
    lost: Arc<AtomicBool>,
    reason: Arc<Mutex<String>>,
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
        *lock(&self.reason) = reason.trim().to_owned();
        self.lost.store(true, Ordering::Release);
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
    pub(super) fn scoped<R>(&self, doing: &str, create: impl FnOnce() -> R) -> Result<R> {
        self.alive()?;
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
        match failure {
            None => Ok(result),
            Some(error) => {
                let error = from_wgpu_error(doing, &error);
                // Validation errors are how wgpu reports objects of a device that is gone.
                if error.kind() == crate::ErrorKind::DeviceLost {
                    self.inner.health.mark(doing);
                }
                Err(error)
            }
        }
    }

    /// The one place that waits for the device.
    ///
    /// wgpu's `poll` panics on a lost device, so it runs under `catch_unwind` here; wgpu's state is
    /// not used again after such a panic, since the device is marked as lost.
    pub(super) fn wait_for(
        &self,
        submission: Option<wgpu::SubmissionIndex>,
        timeout: Option<Duration>,
    ) -> Result<()> {
        self.alive()?;
        self.poll(wgpu::PollType::Wait { submission_index: submission, timeout })
    }

    /// Lets wgpu run callbacks of work that is done, without waiting.
    pub(super) fn poll_once(&self) -> Result<()> {
        self.alive()?;
        self.poll(wgpu::PollType::Poll)
    }

    fn poll(&self, how: wgpu::PollType) -> Result<()> {
        let name = &self.inner.profile.name;
        match catch_unwind(AssertUnwindSafe(|| self.inner.device.poll(how))) {
            Ok(Ok(_)) => self.alive(),
            Ok(Err(wgpu::PollError::Timeout)) => Err(err!(
                Timeout,
                "waiting for {name}: the work is not done within the time given; wait again or give it more"
            )),
            Ok(Err(e)) => Err(err!(Validation, "waiting for {name}: {e}")),
            Err(_) => {
                self.inner.health.mark("wgpu panicked while waiting for it");
                self.alive()
            }
        }
    }

    /// Waits until all submitted work is done.
    ///
    /// # Errors
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost).
    pub fn wait(&self) -> Result<()> {
        self.wait_for(None, None)
    }

    /// Waits until all submitted work is done, for at most `timeout`.
    ///
    /// # Errors
    /// [`Timeout`](crate::ErrorKind::Timeout), after which the work goes on and can be waited for
    /// again; [`DeviceLost`](crate::ErrorKind::DeviceLost).
    pub fn wait_timeout(&self, timeout: Duration) -> Result<()> {
        self.wait_for(None, Some(timeout))
    }

    /// Asks the device for a sign of life: a mapped buffer cannot be created on a lost one. Finds the
    /// loss of a caller's device, whose callback we leave alone.
    ///
    /// # Errors
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost), or out of memory.
    pub fn probe(&self) -> Result<()> {
        let desc = wgpu::BufferDescriptor {
            label: Some("tilework probe"),
            size: 16,
            usage: wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        };
        let buffer = self.scoped("asking the device for a sign of life", || {
            catch_unwind(AssertUnwindSafe(|| self.inner.device.create_buffer(&desc))).ok()
        })?;
        match buffer.filter(|b| b.slice(..).get_mapped_range().is_ok()) {
            Some(_) => Ok(()),
            None => {
                self.inner.health.mark("a probe could not be mapped");
                self.alive()
            }
        }
    }
}
