//! Trees whose levels are made on the device, each from the one above, and pictures of them: shared by `quadtree` and
//! `adaptive`.

pub(crate) mod canvas;

use super::Failure;
use indicatif::ProgressBar;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tilework::gpu::OwnKernel;
use tilework::prelude::*;
use tilework::{Plan, Result};

/// Words per cell. The program defines all but [`CHILD`].
pub(crate) const WORDS: usize = 4;
/// The word with the index of a cell's first child in the next level.
pub(crate) const CHILD: usize = 3;
/// The child of a leaf.
pub(crate) const NONE: u32 = u32::MAX;

/// Selects cell indices by flags; input and output lengths are on the device.
type Selection = Plan<Select, u32>;

/// A tree on the device, level by level.
///
/// The program's kernel makes the cells of a level and flags those that want to split. `Select` lists these in order, a
/// kernel of one thread counts their children, and the program's kernel runs over them by an indirect dispatch. No
/// count returns to the host before the end, and the order of cells is deterministic.
#[derive(Debug)]
pub(crate) struct Levels {
    open: OwnKernel,
    pub(crate) levels: Vec<Level>,
    flags: Buffer<u32>,
    numbers: Buffer<u32>,
    parents: Buffer<u32>,
    wanted: Buffer<u32>,
    summary: Buffer<u32>,
}

/// A level of a tree.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) capacity: usize,
    pub(crate) cells: Buffer<u32>,
    /// Number of cells.
    pub(crate) count: Buffer<u32>,
    select: Selection,
}

/// The outcome of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Returns the maximum cells of each level down to `deepest`: four children per cell above, but no more than `most` and
/// `limit`. Levels that cannot have cells are left out.
pub(crate) fn capacities(first: usize, deepest: u32, limit: usize, most: usize) -> Vec<usize> {
    let below = |above: &usize| Some(above.saturating_mul(4).min(most).min(limit) / 4 * 4).filter(|n| *n > 0);
    std::iter::successors(Some(first), below).take(deepest as usize + 1).collect()
}

impl Levels {
    /// Makes a tree with at most `capacities` cells per level; the first level has exactly that many.
    pub(crate) fn new(gpu: &Gpu, capacities: &[usize]) -> Result<Self> {
        let level = |&capacity: &usize| {
            let select = Select::new(capacity).counted().plan::<u32>(gpu)?;
            let cells = gpu.alloc(WORDS * capacity)?;
            Ok(Level { capacity, cells, count: gpu.upload(&[capacity as u32])?, select })
        };
        let most = capacities.iter().copied().max().unwrap_or(1);
        Ok(Self {
            open: gpu.kernel("levels.wgsl", include_str!("levels.wgsl"), "open_level")?,
            levels: capacities.iter().map(level).collect::<Result<_>>()?,
            flags: gpu.alloc(most)?,
            numbers: gpu.alloc(most)?,
            parents: gpu.alloc(most)?,
            wanted: gpu.alloc(1)?,
            summary: gpu.alloc_zeroed(2 * capacities.len())?,
        })
    }

    /// Returns the maximum number of levels.
    pub(crate) fn len(&self) -> u32 {
        self.levels.len() as u32
    }

    /// Records the first level. `plant` binds parameters, cells, flags, indices, and `rest`.
    pub(crate) fn plant(
        &self,
        rec: &mut Recorder,
        plant: &OwnKernel,
        params: Arg<'_>,
        rest: &[Arg<'_>],
        workgroups: [u32; 3],
    ) -> Result<()> {
        let level = &self.levels[0];
        let args = [params, Arg::from(&level.cells), Arg::from(&self.flags), Arg::from(&self.numbers)];
        plant.record(rec, &[&args[..], rest].concat(), workgroups)?;
        self.select(rec, 0)
    }

    /// Records level `number`, from 1. `divide` runs one workgroup per `each` cells. It binds parameters, the number of
    /// cells, the indices of their parents, the cells above, the new cells, flags, indices, and `rest`.
    pub(crate) fn divide(
        &self,
        rec: &mut Recorder,
        number: u32,
        (divide, each): (&OwnKernel, u32),
        params: Arg<'_>,
        rest: &[Arg<'_>],
    ) -> Result<()> {
        let (above, level) = (&self.levels[number as usize - 1], &self.levels[number as usize]);
        let open = [level.capacity as u32 / 4, number];
        let args = [Arg::uniform(&open), Arg::from(&self.wanted), Arg::from(&level.count)];
        self.open.record(rec, &[&args[..], &[Arg::from(&self.summary)]].concat(), [1, 1, 1])?;
        let lists = [&level.count, &self.parents, &above.cells, &level.cells, &self.flags, &self.numbers];
        let args = [&[params][..], &lists.map(Arg::from), rest].concat();
        divide.record_counted(rec, &args, &level.count, each, level.capacity)?;
        self.select(rec, number)
    }

    /// Lists the cells that want to split, unless the level is the last.
    fn select(&self, rec: &mut Recorder, number: u32) -> Result<()> {
        if number + 1 == self.len() {
            return Ok(());
        }
        let Level { capacity, count, select, .. } = &self.levels[number as usize];
        let (numbers, flags) = (self.numbers.slice(..*capacity)?, self.flags.slice(..*capacity)?);
        let parents = self.parents.slice(..*capacity)?;
        select.with_length(count).record(rec, numbers, flags, parents, &self.wanted)
    }

    /// Waits, and reads each level up to the last one with cells.
    pub(crate) fn read(&self) -> Result<Vec<(Summary, Vec<[u32; WORDS]>)>> {
        let mut summary: Vec<usize> = self.summary.read()?.iter().map(|n| *n as usize).collect();
        summary[0] = self.levels[0].capacity;
        let mut all = Vec::new();
        for (number, level) in self.levels.iter().enumerate() {
            let (cells, wanted) = (summary[2 * number], summary[2 * number + 1]);
            if cells == 0 {
                break;
            }
            let split = summary.get(2 * number + 2).map_or(0, |children| children / 4);
            let words = level.cells.slice(..WORDS * cells)?.read()?;
            let words = words.chunks_exact(WORDS).map(|w| [w[0], w[1], w[2], w[3]]).collect();
            all.push((Summary { cells, wanted, split }, words));
        }
        Ok(all)
    }
}

/// Measures the device time of all `stages` in one submission, and of each alone. Then submits all once more, whose
/// results can be read.
pub(crate) fn times(
    gpu: &Gpu,
    stages: u32,
    mut record: impl FnMut(&mut Recorder, u32) -> Result<()>,
) -> Result<(f64, Vec<f64>)> {
    let mut all = |rec: &mut Recorder| (0..stages).try_for_each(|stage| record(rec, stage));
    // Enough runs to raise a card's clocks.
    let whole =
        if gpu.profile().is_cpu() { gpu.time(all)?.seconds } else { gpu.measure(11, &mut all)?.median() };
    let each = (0..stages).map(|stage| Ok(gpu.time(|rec| record(rec, stage))?.seconds));
    let each = each.collect::<Result<_>>()?;
    let mut rec = gpu.recorder();
    (0..stages).try_for_each(|stage| record(&mut rec, stage))?;
    rec.submit()?;
    Ok((whole, each))
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

/// Packs the even bits of a code.
fn gather(code: u32) -> u32 {
    (0..16).map(|bit| (code >> (2 * bit) & 1) << bit).sum()
}

/// Returns column and row of a cell with this Morton code in its level.
pub(crate) fn place(code: u32) -> (u32, u32) {
    (gather(code), gather(code >> 1))
}

/// Parses the file name of `--picture`.
pub(crate) fn picture_file(name: OsString) -> std::result::Result<PathBuf, Failure> {
    let path = PathBuf::from(name);
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("png")) {
        return Ok(path);
    }
    Err(Failure::bad_input("--picture: must end with .png").at(&path))
}
