//! Branches on which the lanes of a warp disagree. Threads are numbered x fastest, then y, then z.

use std::collections::BTreeSet;

/// Warps of a launch, and how many diverge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Divergence {
    /// All warps.
    pub warps: u64,
    /// Warps whose lanes take more than one branch.
    pub divergent: u64,
    /// Branches taken, summed over the warps: a warp runs one pass for each.
    pub passes: u64,
    /// Lanes without a thread.
    pub idle_lanes: u64,
    /// All threads.
    pub threads: u64,
}

impl Divergence {
    /// Returns the share of lanes that work, over all passes: `threads / (passes warp)`.
    pub fn efficiency(&self, warp: u32) -> f64 {
        self.threads as f64 / (self.passes as f64 * f64::from(warp))
    }
}

/// Returns the position of thread `index` in a block of x, y, z threads.
pub fn lane_position(block: [u32; 3], index: u32) -> [u32; 3] {
    let [x, y, _] = block.map(|d| d.max(1));
    [index % x, index / x % y, index / (x * y)]
}

/// Counts the divergent warps in `grid` blocks of `block` threads. `way` returns the branch that the thread at a global
/// position takes.
///
/// ```
/// use tilework::analysis::divergence;
///
/// // An image of 76 x 62 pixels in blocks of 16 x 16.
/// let d = divergence([5, 4, 1], [16, 16, 1], 32, |[x, y, _]| u32::from(x < 76 && y < 62));
/// assert_eq!((d.warps, d.divergent), (160, 31));
/// ```
pub fn divergence(grid: [u32; 3], block: [u32; 3], warp: u32, way: impl Fn([u32; 3]) -> u32) -> Divergence {
    let (block, warp) = (block.map(|d| d.max(1)), warp.max(1));
    let threads: u32 = block.iter().product();
    let mut all = Divergence::default();
    for z in 0..grid[2] {
        for y in 0..grid[1] {
            for x in 0..grid[0] {
                for first in (0..threads).step_by(warp as usize) {
                    let lanes = first..threads.min(first + warp);
                    all.idle_lanes += u64::from(warp) - lanes.len() as u64;
                    let ways: BTreeSet<u32> = lanes
                        .map(|i| {
                            let [tx, ty, tz] = lane_position(block, i);
                            way([x * block[0] + tx, y * block[1] + ty, z * block[2] + tz])
                        })
                        .collect();
                    all.warps += 1;
                    all.passes += ways.len() as u64;
                    all.divergent += u64::from(ways.len() > 1);
                }
                all.threads += u64::from(threads);
            }
        }
    }
    all
}

/// Returns the passes of a warp through a loop, given each lane's iterations. After the first lane leaves, each
/// iteration takes two passes: one for the lanes that go on, one for those that left.
pub fn loop_passes(iterations: &[u32]) -> u32 {
    let least = iterations.iter().min().copied().unwrap_or(0);
    let most = iterations.iter().max().copied().unwrap_or(0);
    least + 2 * (most - least)
}

/// Returns the seconds of a warp whose lanes take several branches, one after another.
///
/// ```
/// use tilework::analysis::branch_seconds;
///
/// assert_eq!(branch_seconds(&[0.010, 0.002]), 0.012);
/// ```
pub fn branch_seconds(branches: &[f64]) -> f64 {
    branches.iter().sum()
}

#[cfg(test)]
mod tests;
