//! Builds quadtrees on a device.

use super::common::levels::{Levels, capacities};
use super::common::workgroups;
use super::points::Point;
use super::tree::{Rule, Square, Tree};
use tilework::gpu::OwnKernel;
use tilework::prelude::*;
use tilework::{Plan, Result};

/// Threads per workgroup.
const WORKGROUP_SIZE: usize = 256;

/// Sorts codes together with point indices.
type Sort = Plan<RadixSort, u32>;

#[repr(C)]
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Params {
    low: [f32; 2],
    scale: f32,
    n: u32,
    leaf: u32,
    level: u32,
    deepest: u32,
    pad: u32,
}

/// Plans and buffers to build a quadtree over points on a device.
///
/// Points are sorted by Morton code, with as many bits as the deepest level needs. The points of any cell are then
/// consecutive, and a cell splits by three binary searches.
#[derive(Debug)]
pub(crate) struct Builder {
    encode: OwnKernel,
    plant: OwnKernel,
    divide: OwnKernel,
    sort: Sort,
    points: Buffer<f32>,
    codes: Buffer<u32>,
    numbers: Buffer<u32>,
    sorted: Buffer<u32>,
    order: Buffer<u32>,
    levels: Levels,
    params: Params,
    /// Maximum cells of each level.
    pub(crate) room: Vec<usize>,
}

impl Builder {
    /// Plans a tree over these points. No level has more than `limit` cells.
    pub(crate) fn new(
        gpu: &Gpu,
        points: &[Point],
        square: &Square,
        rule: Rule,
        limit: usize,
    ) -> Result<Self> {
        let kernel = |entry| gpu.kernel("quadtree.wgsl", include_str!("quadtree.wgsl"), entry);
        let n = points.len();
        // A splitting cell has more points than a leaf may have, and the cells of a level share none.
        let most = 4 * (n / (rule.leaf as usize + 1));
        let limits = &gpu.profile().limits;
        let bindable = limits.max_storage_binding.min(limits.max_buffer_size) / 16;
        let room = capacities(1, rule.deepest, limit.min(bindable as usize), most);
        let bits = 32 - 2 * rule.deepest.max(1)..32;
        let word = || gpu.alloc::<u32>(n.max(1));
        let Square { low, scale, .. } = *square;
        let Rule { leaf, deepest } = rule;
        Ok(Self {
            encode: kernel("encode")?,
            plant: kernel("plant")?,
            divide: kernel("divide")?,
            sort: RadixSort::new(n.max(1)).bits(bits).with_values().plan::<u32>(gpu)?,
            points: gpu.upload(if n > 0 { points.as_flattened() } else { &[0.0; 2] })?,
            codes: word()?,
            numbers: word()?,
            sorted: word()?,
            order: word()?,
            levels: Levels::new(gpu, &room)?,
            params: Params { low, scale, n: n as u32, leaf, level: 0, deepest, pad: 0 },
            room,
        })
    }

    /// Returns the number of stages: the sort with the root, and each level below.
    pub(crate) fn stages(&self) -> u32 {
        self.levels.len()
    }

    /// Records a stage.
    pub(crate) fn record(&self, rec: &mut Recorder, stage: u32) -> Result<()> {
        let params = Params { level: stage, ..self.params };
        let params = Arg::uniform(&params);
        if stage > 0 {
            let rest = [Arg::from(&self.sorted)];
            return self.levels.divide(rec, stage, (&self.divide, WORKGROUP_SIZE as u32), params, &rest);
        }
        let points = [&self.codes, &self.numbers].map(Arg::from);
        let args = [&[params, Arg::from(&self.points)][..], &points].concat();
        self.encode.record(rec, &args, workgroups(self.params.n as usize, WORKGROUP_SIZE))?;
        let sort = self.sort.with_values(&self.numbers, &self.order);
        sort.record(rec, &self.codes, &self.sorted)?;
        self.levels.plant(rec, &self.plant, params, &[], [1, 1, 1])
    }

    /// Waits for the submitted work and reads the tree.
    pub(crate) fn read(&self) -> Result<Tree> {
        let order = self.order.slice(..self.params.n as usize)?.read()?;
        Ok(Tree::new(self.levels.read()?, order))
    }
}
