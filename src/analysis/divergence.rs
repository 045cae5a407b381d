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

/// Counts the divergent warps in `grid` blocks of `block` threads, where `way` maps a thread's global position to its
/// way.
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
mod tests {
    use super::*;

    fn image(width: u32, height: u32) -> (u64, u64) {
        let grid = [width.div_ceil(16), height.div_ceil(16), 1];
        let d = divergence(grid, [16, 16, 1], 32, |[x, y, _]| u32::from(x < width && y < height));
        (d.warps, d.divergent)
    }

    fn elements(n: u32) -> (u64, u64) {
        let d = divergence([n.div_ceil(64), 1, 1], [64, 1, 1], 32, |[x, ..]| u32::from(x < n));
        (d.divergent, d.warps)
    }

    #[test]
    fn boundary_checks() {
        assert_eq!((image(76, 62), image(76, 61), image(200, 150)), ((160, 31), (160, 35), (1040, 75)));
        assert_eq!([100, 1000, 1003, 10_000].map(elements), [(1, 4), (1, 32), (1, 32), (1, 314)]);
        let below = |[x, y, _]: [u32; 3]| if x < 174 && y < 176 { 1 + u32::from(y > x) } else { 0 };
        let d = divergence([11, 11, 1], [16, 16, 1], 32, below);
        assert_eq!((d.warps, d.divergent), (968, 168));
    }

    #[test]
    fn blocks_and_lanes() {
        let d = divergence([1, 1, 1], [48, 1, 1], 32, |_| 0);
        assert_eq!((d.warps, d.idle_lanes, d.efficiency(32)), (2, 16, 0.75));
        assert_eq!(lane_position([4, 8, 2], 31), [3, 7, 0]);
        assert_eq!(loop_passes(&[6, 7, 8]), 10);
        assert_eq!(loop_passes(&[]), 0);
        assert_eq!((branch_seconds(&[10e-3, 2e-3]), branch_seconds(&[3.0])), (12e-3, 3.0));
    }

    #[test]
    fn reductions() {
        let step = |threads: u32, way: &dyn Fn(u32) -> bool| {
            divergence([1, 1, 1], [threads, 1, 1], 32, |[t, ..]| u32::from(way(t))).divergent
        };
        let interleaved = |n: u32, i: u32| step(n, &|t| t % (2 << i) == 0);
        let sequential = |n: u32, i: u32| step(n, &|t| t < n >> (i + 1));
        assert_eq!((0..9).map(|i| interleaved(512, i)).collect::<Vec<_>>(), [16, 16, 16, 16, 16, 8, 4, 2, 1]);
        assert_eq!((0..9).map(|i| sequential(512, i)).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!((interleaved(1024, 4), sequential(1024, 4)), (32, 0));
    }

    #[test]
    fn a_convolution_whose_block_is_its_input_tile() {
        let inside = |v: u32| (1..31).contains(&v);
        let load = divergence([1, 1, 1], [32, 32, 1], 32, |_| 0);
        let compute = divergence([1, 1, 1], [32, 32, 1], 32, |[x, y, _]| u32::from(inside(x) && inside(y)));
        assert_eq!((load.divergent, compute.divergent, compute.warps), (0, 30, 32));
    }
}
