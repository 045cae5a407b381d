//! Quadtrees on the host: built on the device, and compared with the library's reference.

use super::common::levels::{NONE, Summary, summaries};
use super::points::Point;
use tilework::prelude::*;
use tilework::{Plan, Result, reference};

/// Deepest possible level, whose cells are single columns and rows.
pub(crate) const DEEPEST: u32 = 16;

/// When cells split.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Maximum points of a leaf.
    pub(crate) leaf: u32,
    /// Deepest level.
    pub(crate) deepest: u32,
    /// Maximum cells of the tree.
    pub(crate) limit: usize,
}

/// A cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) level: u32,
    /// Column and row in its level.
    pub(crate) place: [u32; 2],
    /// Its points are `order[first..first + count]`.
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Index of its first child.
    pub(crate) child: Option<u32>,
}

impl Cell {
    fn new(&[child, first, count, level, x, y]: &[u32; 6]) -> Self {
        Self { level, place: [x, y], first, count, child: Some(child).filter(|child| *child != NONE) }
    }

    /// Returns the intervals across and down, scaled to the unit square.
    pub(crate) fn ends(&self) -> [[f64; 2]; 2] {
        let side = 0.5f64.powi(self.level as i32);
        self.place.map(|i| [f64::from(i) * side, f64::from(i + 1) * side])
    }
}

/// A quadtree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) cells: Vec<Cell>,
    /// Point indices, cell by cell.
    pub(crate) order: Vec<u32>,
}

impl Tree {
    fn new(nodes: &[[u32; 6]], order: Vec<u32>) -> Self {
        Self { cells: nodes.iter().map(Cell::new).collect(), order }
    }

    pub(crate) fn leaves(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.child.is_none())
    }

    /// Returns the outcome of each level.
    pub(crate) fn levels(&self, rule: Rule) -> Vec<Summary> {
        let wants = |cell: &Cell| cell.count > rule.leaf && cell.level < rule.deepest;
        summaries(self.cells.iter().map(|cell| (cell.level, wants(cell), cell.child.is_some())))
    }

    /// Compares the tree with the reference, and describes the first difference.
    pub(crate) fn check(&self, points: &[Point], rule: Rule) -> std::result::Result<(), String> {
        let Rule { leaf, deepest, limit } = rule;
        let square = reference::quadtree_square(points);
        let (nodes, order) = reference::quadtree(points, square, leaf, deepest, limit);
        let want = Self::new(&nodes, order);
        if let Some(i) = (0..want.cells.len().max(self.cells.len())).find(|i| want.cells.get(*i) != self.cells.get(*i))
        {
            return Err(format!("cell {i} is {:?}; the device says {:?}", want.cells.get(i), self.cells.get(i)));
        }
        match (0..points.len()).find(|i| want.order.get(*i) != self.order.get(*i)) {
            Some(i) => Err(format!(
                "point {i} of the order is {:?}; the device says {:?}",
                want.order.get(i),
                self.order.get(i)
            )),
            None => Ok(()),
        }
    }
}

/// The plan and buffers of a tree.
#[derive(Debug)]
pub(crate) struct Builder {
    plan: Plan<Quadtree, f32>,
    points: Buffer<f32>,
    nodes: Buffer<u32>,
    order: Buffer<u32>,
    count: Buffer<u32>,
}

impl Builder {
    /// Plans a tree over these points, as large as the device can bind.
    pub(crate) fn new(gpu: &Gpu, points: &[Point], rule: Rule) -> Result<(Self, Rule)> {
        let limits = &gpu.profile().limits;
        let bindable = limits.max_storage_binding.min(limits.max_buffer_size) / 24;
        let rule = Rule { limit: rule.limit.min(bindable as usize), ..rule };
        let tree = Quadtree::new(points.len()).capacity(rule.leaf).depth(rule.deepest).limit(rule.limit);
        let builder = Self {
            points: gpu.upload(points.as_flattened())?,
            nodes: gpu.alloc(6 * tree.max_nodes())?,
            order: gpu.alloc(points.len())?,
            count: gpu.alloc(1)?,
            plan: tree.with_order().plan(gpu)?,
        };
        Ok((builder, rule))
    }

    /// Records all levels.
    pub(crate) fn record(&self, rec: &mut Recorder) -> Result<()> {
        self.plan.with_order(&self.order).record(rec, &self.points, &self.nodes, &self.count)
    }

    /// Waits for the submitted work and reads the tree.
    pub(crate) fn read(&self) -> Result<Tree> {
        let count = self.count.read()?[0] as usize;
        let nodes = self.nodes.slice(..6 * count)?.read()?;
        let order = if self.points.is_empty() { Vec::new() } else { self.order.read()? };
        Ok(Tree::new(nodes.as_chunks().0, order))
    }
}
