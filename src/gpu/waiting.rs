//! Waiting for the device: by blocking the thread, or by yielding to an executor.

use super::fence::Notice;
use super::{Gpu, transfer};
use crate::error::Result;
use futures_intrusive::channel::shared::oneshot_channel;
use std::sync::Arc;

/// How a function that serves both kinds of callers waits. A page in a browser cannot block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Blocks the thread. The future is then ready at its first poll.
    #[cfg(not(target_arch = "wasm32"))]
    Blocking,
    /// Yields to the executor that polls the future.
    Yielding,
}

impl Waiting {
    /// Runs a function that waits by blocking, to its end.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn block<F: Future>(work: impl FnOnce(Self) -> F) -> F::Output {
        pollster::block_on(work(Self::Blocking))
    }
}

impl Gpu {
    /// As [`wait`](Self::wait), without blocking the thread.
    ///
    /// Any executor works: a helper thread of the `Gpu` drives the device meanwhile. In a browser this also reports
    /// errors of calls that could not wait for the browser's answer, such as running out of memory.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// # pollster::block_on(async {
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::request(GpuOptions::default()).await?;
    /// let total = gpu.reduce(&gpu.upload(&[1.0f32, 2.0])?, Sum)?;
    /// gpu.wait_async().await?;
    /// assert_eq!(total.read_async().await?, [3.0]);
    /// # Ok::<(), tilework::Error>(()) })?;
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`DeviceLost`](crate::ErrorKind::DeviceLost); in a browser also the errors of earlier calls.
    pub async fn wait_async(&self) -> Result<()> {
        self.poll_once()?;
        let (sender, done) = oneshot_channel();
        let notice: Notice = Arc::new(sender);
        self.inner.health.watch(&notice);
        let submission = self.scoped("waiting", || {
            let submission = self.inner.queue.submit([]);
            self.inner.queue.on_submitted_work_done(move || {
                // The receiver may know already that the device is lost.
                let _ = notice.send(true);
            });
            submission
        })?;
        transfer::drive(self, &submission)?;
        done.receive().await;
        self.settled().await?;
        self.probe()
    }

    pub(crate) async fn wait_by(&self, waiting: Waiting) -> Result<()> {
        match waiting {
            #[cfg(not(target_arch = "wasm32"))]
            Waiting::Blocking => self.wait(),
            Waiting::Yielding => self.wait_async().await,
        }
    }
}
