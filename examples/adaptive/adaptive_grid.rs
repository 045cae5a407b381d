//! Refines grids on a device, and compares them with the library's reference.

use super::common::levels::{NONE, Summary, summaries};
use super::field::Field;
use tilework::prelude::*;
use tilework::{Plan, Result, reference};

/// Samples of a cell, across and down.
pub(crate) const SIDE: u32 = 8;

/// When to refine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Level whose cells are all in the grid.
    pub(crate) first: u32,
    /// Deepest level.
    pub(crate) deepest: u32,
    /// A cell whose samples differ by more than this is split.
    pub(crate) threshold: f32,
    /// Maximum cells of the grid.
    pub(crate) limit: usize,
}

/// A cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    pub(crate) level: u32,
    /// Column and row in its level.
    pub(crate) place: [u32; 2],
    pub(crate) mean: f32,
    /// Largest minus smallest sample.
    pub(crate) range: f32,
    /// Index of its first child.
    pub(crate) child: Option<u32>,
}

/// A grid: its cells, level by level.
#[derive(Debug)]
pub(crate) struct Grid(pub(crate) Vec<Cell>);

/// The plan and buffers of a grid.
#[derive(Debug)]
pub(crate) struct Maker {
    plan: Plan<AdaptiveGrid, f32>,
    image: Option<Buffer<f32>>,
    nodes: Buffer<u32>,
    values: Buffer<f32>,
    count: Buffer<u32>,
}

impl Maker {
    /// Plans a grid of this field, as large as the device can bind.
    pub(crate) fn new(gpu: &Gpu, field: &Field, rule: Rule) -> Result<(Self, Rule)> {
        let limits = &gpu.profile().limits;
        let bindable = limits.max_storage_binding.min(limits.max_buffer_size) / 16;
        let limit = rule.limit.min(bindable as usize).max(1 << (2 * rule.first));
        let (op, image) = match field {
            Field::Image(grey) => (AdaptiveGrid::of_image([grey.height, grey.width]), Some(gpu.upload(&grey.pixels)?)),
            _ => (AdaptiveGrid::of_function(&field.wgsl()), None),
        };
        let op = op.levels(rule.first, rule.deepest).threshold(rule.threshold).limit(limit);
        let (nodes, values) = (gpu.alloc(4 * op.max_nodes())?, gpu.alloc(2 * op.max_nodes())?);
        let maker = Self { plan: op.plan(gpu)?, image, nodes, values, count: gpu.alloc(1)? };
        Ok((maker, Rule { limit, ..rule }))
    }

    /// Records all levels.
    pub(crate) fn record(&self, rec: &mut Recorder) -> Result<()> {
        match &self.image {
            Some(image) => self.plan.record(rec, image, &self.nodes, &self.values, &self.count),
            None => self.plan.record_function(rec, &self.nodes, &self.values, &self.count),
        }
    }

    /// Waits for the submitted work and reads the grid.
    pub(crate) fn read(&self) -> Result<Grid> {
        let count = self.count.read()?[0] as usize;
        let nodes = self.nodes.slice(..4 * count)?.read()?;
        let values = self.values.slice(..2 * count)?.read()?;
        Ok(Grid::new(nodes.as_chunks().0, values.as_chunks().0))
    }
}

impl Grid {
    fn new(nodes: &[[u32; 4]], values: &[[f32; 2]]) -> Self {
        let cell = |(&[child, level, x, y], &[mean, range]): (&[u32; 4], &[f32; 2])| {
            let child = Some(child).filter(|child| *child != NONE);
            Cell { level, place: [x, y], mean, range, child }
        };
        Self(nodes.iter().zip(values).map(cell).collect())
    }

    /// Returns the cells that are not split.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &Cell> {
        self.0.iter().filter(|cell| cell.child.is_none())
    }

    /// Returns the integral of the field over the unit square: the sum of mean times area over the leaves.
    pub(crate) fn integral(&self) -> f64 {
        self.leaves().map(|cell| f64::from(cell.mean) * 0.25f64.powi(cell.level as i32)).sum()
    }

    /// Returns the outcome of each level.
    pub(crate) fn levels(&self, rule: Rule) -> Vec<Summary> {
        let wants = |cell: &Cell| cell.range > rule.threshold && cell.level < rule.deepest;
        summaries(self.0.iter().map(|cell| (cell.level, wants(cell), cell.child.is_some())))
    }

    /// Compares the grid with the reference, cell by cell, and describes the first difference. The device's functions
    /// are less accurate: a cell whose range is that near the threshold may split or not.
    pub(crate) fn check(&self, field: &Field, rule: Rule) -> std::result::Result<(), String> {
        let Rule { first, deepest, threshold, limit } = rule;
        let at = |x: f64, y: f64| field.at(x, y) as f32;
        let near = 2.0 * field.tolerance();
        // Takes the device's decision where both are right.
        let split: std::collections::HashSet<_> =
            self.0.iter().filter(|c| c.child.is_some()).map(|c| (c.level, c.place)).collect();
        let splits = |&[_, level, x, y]: &[u32; 4], range: f32| {
            let sure = (f64::from(range) - f64::from(threshold)).abs() > near;
            if sure { range > threshold } else { split.contains(&(level, [x, y])) }
        };
        let (nodes, values) = reference::adaptive_grid(at, first..=deepest, splits, limit);
        let want = Self::new(&nodes, &values);
        if want.0.len() != self.0.len() {
            return Err(format!("the grid has {} cells; the device says {}", want.0.len(), self.0.len()));
        }
        for (i, (want, got)) in want.0.iter().zip(&self.0).enumerate() {
            // False for NaN.
            let within = |a: f32, b: f32, most: f64| (f64::from(a) - f64::from(b)).abs() <= most;
            let close = within(want.mean, got.mean, near / 2.0) && within(want.range, got.range, near);
            if !close || (want.level, want.place, want.child) != (got.level, got.place, got.child) {
                return Err(format!("cell {i} is {want:?}; the device says {got:?}"));
            }
        }
        Ok(())
    }
}
