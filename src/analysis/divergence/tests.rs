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
