//! Refines grids on a device.

use super::common::levels::{CHILD, Level, Levels, NONE, Summary, WORDS, capacities, place};
use super::common::workgroups;
use super::field::Field;
use tilework::Result;
use tilework::gpu::OwnKernel;
use tilework::prelude::*;

/// Samples of a cell, across and down.
pub(crate) const SIDE: u32 = 8;
/// Cells whose means one workgroup adds.
const SUMMED: usize = 256;

/// When to refine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Level whose cells are all in the grid.
    pub(crate) first: u32,
    /// Deepest level.
    pub(crate) deepest: u32,
    /// A cell whose samples differ by more than this is split.
    pub(crate) threshold: f32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Params {
    field: u32,
    level: u32,
    deepest: u32,
    threshold: f32,
    width: u32,
    height: u32,
    pad: [u32; 2],
}

/// A cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    /// Morton code within its level.
    pub(crate) code: u32,
    pub(crate) mean: f32,
    /// Largest minus smallest sample.
    pub(crate) range: f32,
    /// Index of its first child in the next level.
    pub(crate) child: Option<u32>,
}

/// A grid, level by level from `Rule::first`.
#[derive(Debug)]
pub(crate) struct Grid {
    pub(crate) levels: Vec<(Summary, Vec<Cell>)>,
    /// The mean of the field over the unit square.
    pub(crate) integral: f64,
}

/// Plans and buffers to make a grid.
#[derive(Debug)]
pub(crate) struct Maker {
    measure_first: OwnKernel,
    measure: OwnKernel,
    sum_leaves: OwnKernel,
    sum_sums: OwnKernel,
    levels: Levels,
    image: Buffer<u8>,
    sums: Buffer<f32>,
    totals: Buffer<f32>,
    rule: Rule,
    params: Params,
    /// Maximum cells of each level.
    pub(crate) room: Vec<usize>,
}

impl Maker {
    /// Plans a grid of this field. Each level but the first has at most `limit` cells.
    pub(crate) fn new(gpu: &Gpu, field: &Field, rule: Rule, limit: usize) -> Result<Self> {
        let kernel = |entry| gpu.kernel("adaptive.wgsl", include_str!("adaptive.wgsl"), entry);
        let limits = &gpu.profile().limits;
        let bindable = limits.max_storage_binding.min(limits.max_buffer_size) / 16;
        let limit = limit.min(bindable as usize);
        let room = capacities(1 << (2 * rule.first), rule.deepest - rule.first, limit, usize::MAX);
        let most = room.iter().copied().max().unwrap_or(1);
        let (image, width, height) = match field {
            Field::Image(grey) => (&grey.pixels[..], grey.width as u32, grey.height as u32),
            _ => (&[0u8][..], 1, 1),
        };
        let Rule { deepest, threshold, .. } = rule;
        let params =
            Params { field: field.number(), level: 0, deepest, threshold, width, height, pad: [0; 2] };
        Ok(Self {
            measure_first: kernel("measure_first")?,
            measure: kernel("measure")?,
            sum_leaves: kernel("sum_leaves")?,
            sum_sums: kernel("sum_sums")?,
            levels: Levels::new(gpu, &room)?,
            image: gpu.upload(image)?,
            sums: gpu.alloc(most.div_ceil(SUMMED))?,
            totals: gpu.alloc(rule.deepest as usize + 1)?,
            rule,
            params,
            room,
        })
    }

    /// Returns the number of stages: one per level, and the sum.
    pub(crate) fn stages(&self) -> u32 {
        self.levels.len() + 1
    }

    /// Records a stage.
    pub(crate) fn record(&self, rec: &mut Recorder, stage: u32) -> Result<()> {
        if stage == self.levels.len() {
            return (0..stage).try_for_each(|number| self.sum(rec, number));
        }
        let params = Params { level: self.rule.first + stage, ..self.params };
        let params = Arg::uniform(&params);
        let rest = [Arg::from(&self.image)];
        if stage > 0 {
            return self.levels.divide(rec, stage, (&self.measure, 1), params, &rest);
        }
        self.levels.plant(rec, &self.measure_first, params, &rest, workgroups(self.room[0], 1))
    }

    /// Records the sum of the means of a level's leaves.
    fn sum(&self, rec: &mut Recorder, number: u32) -> Result<()> {
        let params = Params { level: number, ..self.params };
        let Level { cells, count, capacity, .. } = &self.levels.levels[number as usize];
        let args = [Arg::from(count), Arg::from(cells), Arg::from(&self.sums)];
        self.sum_leaves.record_counted(rec, &args, count, SUMMED as u32, *capacity)?;
        let args = [Arg::uniform(&params), Arg::from(count), Arg::from(&self.sums), Arg::from(&self.totals)];
        self.sum_sums.record(rec, &args, [1, 1, 1])
    }

    /// Waits for the submitted work and reads the grid.
    pub(crate) fn read(&self) -> Result<Grid> {
        let cell = |w: [u32; WORDS]| Cell {
            code: w[0],
            mean: f32::from_bits(w[1]),
            range: f32::from_bits(w[2]),
            child: Some(w[CHILD]).filter(|child| *child != NONE),
        };
        let levels = self.levels.read()?.into_iter();
        let levels = levels.map(|(s, cells)| (s, cells.into_iter().map(cell).collect())).collect();
        Ok(Grid { levels, integral: self.integral()? })
    }

    /// As [`read`](Self::read), but reads only the integral.
    pub(crate) fn integral(&self) -> Result<f64> {
        let totals = self.totals.read()?;
        let area = |number: usize| 0.25f64.powi((self.rule.first as usize + number) as i32);
        Ok((0..self.room.len()).map(|i| area(i) * f64::from(totals[i])).sum())
    }
}

impl Grid {
    /// Returns the cells that are not split.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &Cell> {
        self.levels.iter().flat_map(|(_, cells)| cells).filter(|cell| cell.child.is_none())
    }

    /// Compares the grid with one computed on the processor, cell by cell: samples, splits under the same limits, and
    /// the sum over the leaves. Describes the first difference.
    pub(crate) fn check(&self, field: &Field, rule: Rule, room: &[usize]) -> std::result::Result<(), String> {
        let mut codes: Vec<u32> = (0..1 << (2 * rule.first)).collect();
        let mut integral = 0.0;
        for (i, level) in (rule.first..=rule.deepest).enumerate() {
            let none = Vec::new();
            let cells = self.levels.get(i).map_or(&none, |(_, cells)| cells);
            if codes != cells.iter().map(|cell| cell.code).collect::<Vec<_>>() {
                return Err(format!("level {level} has {} other cells", codes.len()));
            }
            let most = room.get(i + 1).map_or(0, |room| room / 4);
            let mut next = Vec::new();
            for cell in cells {
                let what = || format!("level {level}, cell {}", cell.code);
                let (mean, range) = measured(field, level, cell.code);
                // False for NaN.
                let near = |x: f64, y: f32, much: f64| (x - f64::from(y)).abs() <= much * field.tolerance();
                if !near(mean, cell.mean, 1.0) || !near(range, cell.range, 2.0) {
                    let (had, wide) = (cell.mean, cell.range);
                    return Err(format!(
                        "{}: mean {mean:.5}, range {range:.5}; the device says {had:.5}, {wide:.5}",
                        what()
                    ));
                }
                let wants = cell.range > rule.threshold && level < rule.deepest;
                let child = (wants && next.len() / 4 < most).then_some(next.len() as u32);
                if cell.child != child {
                    let says = cell.child;
                    return Err(format!("{} has children at {child:?}; the device says {says:?}", what()));
                }
                match child {
                    Some(_) => next.extend((0..4).map(|quarter| 4 * cell.code + quarter)),
                    None => integral += f64::from(cell.mean) * 0.25f64.powi(level as i32),
                }
            }
            codes = next;
        }
        // f32 sums of a few dozen additions each.
        if (integral - self.integral).abs() <= 64.0 * f64::from(f32::EPSILON) * integral.abs().max(1.0) {
            return Ok(());
        }
        Err(format!("the leaves add up to {integral}; the device says {}", self.integral))
    }
}

/// Returns the mean and the range of a cell's samples.
fn measured(field: &Field, level: u32, code: u32) -> (f64, f64) {
    let (column, row) = place(code);
    let pitch = 1.0 / f64::from(SIDE << level);
    let (mut sum, mut least, mut largest) = (0.0, f64::INFINITY, f64::NEG_INFINITY);
    for i in 0..SIDE * SIDE {
        let x = (f64::from(column * SIDE + i % SIDE) + 0.5) * pitch;
        let y = (f64::from(row * SIDE + i / SIDE) + 0.5) * pitch;
        let value = field.at(x, y);
        sum += value;
        least = value.min(least);
        largest = value.max(largest);
    }
    (sum / f64::from(SIDE * SIDE), largest - least)
}
