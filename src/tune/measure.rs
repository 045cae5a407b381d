use super::search::Search;
use crate::gpu::{Gpu, RawSlice};
use crate::program;
use crate::program::prelude::*;
use std::fmt;
use std::time::Duration;

/// Options of tuning.
#[derive(Debug, Clone, PartialEq)]
pub struct TuningOptions {
    /// Time after which no further candidate starts: 3 s. The default is always measured.
    pub budget: Duration,
    /// The search ends when a candidate's time is within this share of the roofline's: 0.05.
    pub near_roofline: f64,
    /// The share by which a winner must be faster than the default: 0.03.
    pub margin: f64,
    /// Maximum bytes of WGSL of a candidate. `None` takes a limit for the device's class.
    pub max_text: Option<usize>,
    /// Whether results are kept on disk.
    pub save: bool,
}

impl Default for TuningOptions {
    fn default() -> Self {
        Self { budget: Duration::from_secs(3), near_roofline: 0.05, margin: 0.03, max_text: None, save: true }
    }
}

/// A variant, and a row of its table unless the op's policy chooses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Name of the variant.
    pub variant: &'static str,
    /// Name of the row.
    pub row: Option<String>,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.row {
            Some(row) => f.pad(&format!("{} {row}", self.variant)),
            None => f.pad(self.variant),
        }
    }
}

/// The result of trying a candidate.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was correct and took these seconds: of a single run, if that was far too slow.
    Measured(f64),
    /// It was correct. Time was not measured.
    Right,
    /// It differed from the default. It is denied unless the default is wrong.
    Wrong(String),
    /// It was not run, for this reason.
    Skipped(String),
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stopped {
    /// Everything was tried.
    Done,
    /// The best is as fast as the device allows.
    NearRoofline,
    /// The time was up.
    Budget,
}

/// The result of tuning.
#[derive(Debug, Clone, PartialEq)]
pub struct TuningReport {
    /// Name of the op.
    pub op: &'static str,
    /// The class of shapes that the winner holds for, in an internal notation.
    pub class: String,
    /// The choice of the op's policy.
    pub default: Candidate,
    /// Its seconds.
    pub default_seconds: f64,
    /// The fastest candidate: the default, if nothing was faster by more than noise.
    pub best: Candidate,
    /// Its seconds.
    pub best_seconds: f64,
    /// Minimum seconds on this device, by its measured ceilings.
    pub predicted_seconds: Option<f64>,
    /// The candidates tried, in order. Candidates that do the same work as an earlier one are left out.
    pub tried: Vec<(Candidate, Outcome)>,
    /// The variants that this search denied.
    pub denied: Vec<Denied>,
    /// Why it ended.
    pub stopped: Stopped,
}

impl TuningReport {
    /// Returns how many times faster the best is than the default.
    pub fn gain(&self) -> f64 {
        if self.best == self.default { 1.0 } else { self.default_seconds / self.best_seconds }
    }

    /// Returns the percentage of the roofline that the best reaches.
    pub fn percent_of_roofline(&self) -> Option<f64> {
        self.predicted_seconds.filter(|_| self.best_seconds > 0.0).map(|p| 100.0 * p / self.best_seconds)
    }
}

impl fmt::Display for TuningReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |seconds: f64| seconds * 1e6;
        writeln!(f, "{}: {} in {:.1} us by default", self.op, self.default, us(self.default_seconds))?;
        for (candidate, outcome) in &self.tried {
            match outcome {
                Outcome::Measured(seconds) => writeln!(f, "  {candidate:<32} {:.1} us", us(*seconds))?,
                Outcome::Right => writeln!(f, "  {candidate:<32} right")?,
                Outcome::Wrong(why) => writeln!(f, "  {candidate:<32} WRONG: {why}")?,
                Outcome::Skipped(why) => writeln!(f, "  {candidate:<32} not run: {why}")?,
            }
        }
        let why = match self.stopped {
            Stopped::Done => "all tried",
            Stopped::NearRoofline => "as fast as the device allows",
            Stopped::Budget => "out of time",
        };
        write!(f, "  best: {} in {:.1} us ({why})", self.best, us(self.best_seconds))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    Fastest,
    Right,
}

/// Measures the variants of an op on made-up operands and remembers the fastest.
///
/// The device should be idle otherwise.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument) if the descriptor names a variant.
/// - [`Unsupported`](ErrorKind::Unsupported) for ops whose operands cannot be made up, such as sparse
///   matrices: see [`tune_with`].
/// - Those of planning and running the default.
pub fn tune<T: Element, D: Op<T>>(gpu: &Gpu, op: &D, options: &TuningOptions) -> Result<TuningReport> {
    Search { gpu, lower: &|profile| program::lower(op, profile), options, goal: Goal::Fastest }.run(None)
}

/// As [`tune`], on the caller's operands, in the order of the op's `record`. Use it for sparse matrices, whose
/// structure decides, and other special operands. They are only read: results go to memory of its own.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use std::time::Duration;
/// use tilework::prelude::*;
/// use tilework::tune::{TuningOptions, tune_with};
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1.0f32; 5000])?, gpu.alloc::<f32>(1)?);
/// let operands = [x.slice(..)?.untyped(), y.slice(..)?.untyped()];
/// let options = TuningOptions { budget: Duration::from_millis(200), save: false, ..Default::default() };
/// let report = tune_with::<f32, _>(&gpu, &Reduce::new(Sum, 5000), &operands, &options)?;
/// assert!(report.denied.is_empty());
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Errors
/// As [`tune`]; [`Shape`](ErrorKind::Shape) and [`Buffer`](ErrorKind::Buffer) for operands that do not
/// match the op or cannot be read.
pub fn tune_with<T: Element, D: Op<T>>(
    gpu: &Gpu, op: &D, operands: &[RawSlice<'_>], options: &TuningOptions,
) -> Result<TuningReport> {
    Search { gpu, lower: &|profile| program::lower(op, profile), options, goal: Goal::Fastest }.run(Some(operands))
}

/// Runs every variant of an op once and denies those that differ from the default. Measures nothing.
///
/// # Errors
/// As [`tune`].
pub fn verify<T: Element, D: Op<T>>(gpu: &Gpu, op: &D, options: &TuningOptions) -> Result<TuningReport> {
    Search { gpu, lower: &|profile| program::lower(op, profile), options, goal: Goal::Right }.run(None)
}
