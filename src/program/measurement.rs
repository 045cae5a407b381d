use std::time::Duration;
use web_time::Instant;

/// The clock behind a measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Clock {
    /// Timestamps written by the device around the work.
    Device,
    /// The host's clock around submission and wait, used where the device has no timestamps. Includes the cost of
    /// submitting.
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

/// The time that recorded work took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Seconds.
    pub seconds: f64,
    /// The clock.
    pub clock: Clock,
}

/// Times of repeated runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Seconds of each run, sorted.
    pub seconds: Vec<f64>,
    /// The clock.
    pub clock: Clock,
}

impl Measurement {
    /// Returns the seconds of the fastest run.
    pub fn min(&self) -> f64 {
        self.seconds.first().copied().unwrap_or(f64::NAN)
    }

    /// Returns the seconds of the median run.
    pub fn median(&self) -> f64 {
        self.seconds.get(self.seconds.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Returns the seconds of the slowest run.
    pub fn max(&self) -> f64 {
        self.seconds.last().copied().unwrap_or(f64::NAN)
    }
}

/// How long a card works before it is measured, because it lowers its clocks when idle. Shorter soon after another
/// measurement, when the clocks are still up.
pub(crate) fn warm_up(last: Option<Instant>, start: Instant) -> Duration {
    let soon = last.is_some_and(|last| start - last < Duration::from_millis(100));
    Duration::from_millis(if soon { 100 } else { 500 })
}

/// How many runs take 20 ms, so that the card never waits long for the next, given that `times` runs took this long.
pub(crate) fn batch(took: Duration, times: usize) -> usize {
    let each = took.as_secs_f64().max(1e-6) / times as f64;
    ((0.02 / each) as usize).clamp(1, 1024)
}
