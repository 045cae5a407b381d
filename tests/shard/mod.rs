//! Shards on 1 to 5 ranks of one device, against one device.

mod arrays;
mod collectives;
mod faults;
mod files;
mod gemm;
mod prediction;
mod solver;
mod sort;
mod training;

use crate::support::gpu;
use std::time::Duration;
use tilework::Gpu;

/// A time-out that only a hanging rank reaches.
const LIMIT: Duration = Duration::from_secs(120);

/// Devices of `p` ranks, all the same; `None` without an adapter.
fn group(p: usize) -> Option<Vec<Gpu>> {
    gpu().map(|gpu| vec![gpu.clone(); p])
}

/// Cuts `all` into shards: even ones, one rank with everything, and empty ones between others.
fn cuts<T: Clone>(all: &[T], p: usize) -> Vec<Vec<Vec<T>>> {
    let n = all.len();
    let even: Vec<usize> = (0..=p).map(|i| n * i / p).collect();
    let last: Vec<usize> = (0..=p).map(|i| if i < p { 0 } else { n }).collect();
    let uneven: Vec<usize> = (0..=p).map(|i| if i == p { n } else { n * (i / 2) / p.max(2) / 2 }).collect();
    let cut = |at: Vec<usize>| at.windows(2).map(|w| all[w[0]..w[1]].to_vec()).collect();
    [even, last, uneven].into_iter().map(cut).collect()
}
