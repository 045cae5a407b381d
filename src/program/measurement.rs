//! Times of work on a device.

use std::time::{Duration, Instant};

/// What a time was taken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Clock {
    /// Timestamps written by the device around the work.
    Device,
    /// The host's clock around submission and wait, since the device has no timestamps. Includes the
    /// cost of submitting.
    Wall,
}

impl std::fmt::Display for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Clock::Device => "device",
            Clock::Wall => "wall clock",
        })
    }
}

/// How long recorded work took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Seconds.
    pub seconds: f64,
    /// What they were taken with.
    pub clock: Clock,
}

/// Times of repeated runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Seconds of each run, sorted.
    pub seconds: Vec<f64>,
    /// What they were taken with.
    pub clock: Clock,
}

impl Measurement {
    /// Seconds of the fastest run.
    pub fn min(&self) -> f64 {
        self.seconds.first().copied().unwrap_or(f64::NAN)
    }

    /// Seconds of the run in the middle.
    pub fn median(&self) -> f64 {
        self.seconds.get(self.seconds.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Seconds of the slowest run.
    pub fn max(&self) -> f64 {
        self.seconds.last().copied().unwrap_or(f64::NAN)
    }
}

/// How long a card works before it is measured: it drops its clocks when idle. Less soon after another measurement, when
/// they are still up.
pub(crate) fn warm_up(last: Option<Instant>, start: Instant) -> Duration {
    let soon = last.is_some_and(|last| start - last < Duration::from_millis(100));
    Duration::from_millis(if soon { 100 } else { 500 })
}

/// How many runs make 20 ms, so that the card never waits long for the next, if `times` took this long.
pub(crate) fn batch(took: Duration, times: usize) -> usize {
    let each = took.as_secs_f64().max(1e-6) / times as f64;
    ((0.02 / each) as usize).clamp(1, 1024)
}
