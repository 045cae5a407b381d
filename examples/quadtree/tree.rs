//! Quadtrees on the host: the device's result, and a check of it.

use super::common::levels::{CHILD, NONE, Summary, WORDS, place};
use super::points::Point;

/// Columns and rows of the finest level.
const FINEST: f32 = 65536.0;
/// Deepest possible level, whose cells are single columns and rows.
pub(crate) const DEEPEST: u32 = 16;

/// When cells split.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Maximum points of a leaf.
    pub(crate) leaf: u32,
    /// Deepest level.
    pub(crate) deepest: u32,
}

/// A square with points, divided into columns and rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Square {
    pub(crate) low: Point,
    pub(crate) side: f32,
    /// Columns of the finest level per unit of length.
    pub(crate) scale: f32,
}

impl Square {
    /// Returns the smallest square around finite points.
    pub(crate) fn around(points: &[Point]) -> Self {
        let ends = |axis: usize| {
            let each = points.iter().map(|p| f64::from(p[axis]));
            (each.clone().fold(f64::INFINITY, f64::min), each.fold(f64::NEG_INFINITY, f64::max))
        };
        let (x, y) = if points.is_empty() { ((0.0, 1.0), (0.0, 1.0)) } else { (ends(0), ends(1)) };
        let mut side = (x.1 - x.0).max(y.1 - y.0);
        // Points at one position, or so close that a device may flush differences to 0.
        if side < 1e-30 {
            side = 1.0;
        }
        let low = [x, y].map(|(low, high)| ((low + high - side) / 2.0).min(low) as f32);
        Self { low, side: side as f32, scale: (f64::from(FINEST) / side) as f32 }
    }

    /// Returns column and row of a point in the finest level; on a border, the following ones.
    pub(crate) fn place(&self, point: Point) -> [u32; 2] {
        [0, 1].map(|i| ((point[i] - self.low[i]) * self.scale).floor().clamp(0.0, FINEST - 1.0) as u32)
    }
}

/// A cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The path from the root in base 4, which is its Morton code within the level.
    pub(crate) path: u32,
    /// Its points are `order[first..first + count]`.
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Index of its first child in the next level.
    pub(crate) child: Option<u32>,
}

impl Cell {
    /// Returns the intervals across and down, scaled to the unit square.
    pub(crate) fn ends(&self, level: u32) -> ([f64; 2], [f64; 2]) {
        let side = 0.5f64.powi(level as i32);
        let (x, y) = place(self.path);
        let ends = |i: u32| [f64::from(i) * side, f64::from(i + 1) * side];
        (ends(x), ends(y))
    }
}

/// A quadtree.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) levels: Vec<(Summary, Vec<Cell>)>,
    /// Point indices, cell by cell.
    pub(crate) order: Vec<u32>,
}

impl Tree {
    /// Makes a tree from the device's buffers.
    pub(crate) fn new(levels: Vec<(Summary, Vec<[u32; WORDS]>)>, order: Vec<u32>) -> Self {
        let cell = |w: [u32; WORDS]| Cell {
            path: w[0],
            first: w[1],
            count: w[2],
            child: Some(w[CHILD]).filter(|child| *child != NONE),
        };
        let levels = levels.into_iter().map(|(s, cells)| (s, cells.into_iter().map(cell).collect()));
        Self { levels: levels.collect(), order }
    }

    /// Returns all cells with their levels, from the root down.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (u32, &Cell)> {
        (0..).zip(&self.levels).flat_map(|(level, (_, cells))| cells.iter().map(move |cell| (level, cell)))
    }

    pub(crate) fn leaves(&self) -> impl Iterator<Item = (u32, &Cell)> {
        self.cells().filter(|(_, cell)| cell.child.is_none())
    }

    /// Compares the tree with one built on the processor under the same limits. Describes the first difference.
    pub(crate) fn check(
        &self,
        points: &[Point],
        square: &Square,
        rule: Rule,
        room: &[usize],
    ) -> Result<(), String> {
        let places: Vec<_> = points.iter().map(|p| square.place(*p)).collect();
        // Paths and points of a level's cells.
        let mut level = vec![(0u32, (0..points.len() as u32).collect::<Vec<_>>())];
        for depth in 0.. {
            let none = Vec::new();
            let cells = self.levels.get(depth as usize).map_or(&none, |(_, cells)| cells);
            if cells.len() != level.len() {
                return Err(format!(
                    "level {depth} has {} cells; the device says {}",
                    level.len(),
                    cells.len()
                ));
            }
            if level.is_empty() {
                return Ok(());
            }
            let most = room.get(depth as usize + 1).map_or(0, |room| room / 4);
            let mut next: Vec<(u32, Vec<u32>)> = Vec::new();
            for (cell, (path, mut members)) in cells.iter().zip(level) {
                let what = || format!("level {depth}, cell {path}");
                if (cell.path, cell.count as usize) != (path, members.len()) {
                    let (path, count) = (cell.path, cell.count);
                    let wanted = members.len();
                    return Err(format!("{} has {wanted} points; the device says {count} in {path}", what()));
                }
                let splits =
                    members.len() > rule.leaf as usize && depth < rule.deepest && next.len() / 4 < most;
                let child = splits.then_some(next.len() as u32);
                if cell.child != child {
                    return Err(format!(
                        "{} has children at {child:?}; the device says {:?}",
                        what(),
                        cell.child
                    ));
                }
                if splits {
                    let bit = DEEPEST - 1 - depth;
                    let mut quarters: [Vec<u32>; 4] = Default::default();
                    for member in members {
                        let [x, y] = places[member as usize].map(|place| place >> bit & 1);
                        quarters[(2 * y + x) as usize].push(member);
                    }
                    next.extend((0..).zip(quarters).map(|(q, members)| (4 * path + q, members)));
                    continue;
                }
                let range = cell.first as usize..cell.first as usize + cell.count as usize;
                let mut got = self.order.get(range).unwrap_or_default().to_vec();
                got.sort_unstable();
                members.sort_unstable();
                if got != members {
                    return Err(format!("{} is a leaf with other points than the device says", what()));
                }
            }
            level = next;
        }
        Ok(())
    }
}
