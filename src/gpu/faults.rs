//! Calls to wgpu that fail on purpose, one after another, for this crate's own tests.

use crate::error::{Error, err};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the calls that [`Gpu::scoped`](super::Gpu::scoped) guards, and fails the ones that a test picked.
#[derive(Debug, Default)]
pub(super) struct Faults {
    calls: AtomicU64,
    /// The first call that fails, and the first one after it that succeeds.
    fails: [AtomicU64; 2],
}

impl Faults {
    /// The error of the call that does `doing`, if a test picked it. `None` outside of tests.
    pub(super) fn strike(&self, doing: &str) -> Option<Error> {
        let call = cfg!(test).then(|| self.calls.fetch_add(1, Ordering::Relaxed))?;
        let [from, to] = [&self.fails[0], &self.fails[1]].map(|n| n.load(Ordering::Relaxed));
        (from..to).contains(&call).then(|| err!(OutOfMemory, "{doing}: call {call} fails in this test"))
    }
}

#[cfg(test)]
#[cfg(feature = "default")] // what it tests is of several features
mod tests;
