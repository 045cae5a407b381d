//! Trees whose levels are made on the device, and pictures of them: shared by `quadtree` and `adaptive`.

pub(crate) mod canvas;

use super::Failure;
use indicatif::ProgressBar;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tilework::Result;
use tilework::prelude::*;

/// The child of a leaf.
pub(crate) const NONE: u32 = u32::MAX;

/// The outcome of a level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) cells: usize,
    /// Cells that wanted to split.
    pub(crate) wanted: usize,
    /// Cells that split.
    pub(crate) split: usize,
}

/// For a level without room for all children.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, split, .. } = self;
        write!(f, "{wanted} cells want to split, and there is room for the children of {split}")
    }
}

/// Returns the outcome of each level, from 0, of cells with their level, whether they want to split and whether they
/// do.
pub(crate) fn summaries(cells: impl Iterator<Item = (u32, bool, bool)>) -> Vec<Summary> {
    let mut levels = Vec::new();
    for (level, wants, splits) in cells {
        let at = level as usize;
        levels.resize(levels.len().max(at + 1), Summary::default());
        levels[at].cells += 1;
        levels[at].wanted += usize::from(wants);
        levels[at].split += usize::from(splits);
    }
    levels
}

/// Measures the device time of work. Then submits it once more, whose results can be read.
pub(crate) fn time(gpu: &Gpu, mut record: impl FnMut(&mut Recorder) -> Result<()>) -> Result<f64> {
    // Enough runs to raise a card's clocks.
    let seconds =
        if gpu.profile().is_cpu() { gpu.time(&mut record)?.seconds } else { gpu.measure(11, &mut record)?.median() };
    let mut rec = gpu.recorder();
    record(&mut rec)?;
    rec.submit()?;
    Ok(seconds)
}
/// A spinner with a message on standard error, until it is dropped.
#[derive(Debug)]
pub(crate) struct Doing(ProgressBar);

impl Doing {
    pub(crate) fn new(what: &'static str) -> Self {
        let bar = ProgressBar::new_spinner().with_message(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    pub(crate) fn next(&self, what: &'static str) {
        self.0.set_message(what);
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Formats seconds in a suitable unit.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", 1e6 * s),
        s if s < 1.0 => format!("{:.2} ms", 1e3 * s),
        s => format!("{s:.2} s"),
    }
}

/// Parses the file name of `--picture`.
pub(crate) fn picture_file(name: OsString) -> std::result::Result<PathBuf, Failure> {
    let path = PathBuf::from(name);
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("png")) {
        return Ok(path);
    }
    Err(Failure::bad_input("--picture: must end with .png").at(&path))
}
