//! Formulas for the cost of a kernel before it runs: pure functions, each tested on known answers.
//!
//! | question | take |
//! |---|---|
//! | the maximum gain of parallel work | [`amdahl`] |
//! | whether memory or arithmetic is the bound, and how much reuse it would take | [`Roofline`], [`reuse_for_peak`] |
//! | how many workgroups a multiprocessor holds, and why no more | [`occupancy`], [`Multiprocessor::of_adapter`] |
//! | which subgroups run both sides of a branch | [`divergence`], [`branch_seconds`] |
//! | what a matrix product reads and does | [`Matmul`] |
//! | how often a convolution uses what it loaded | [`Axis`] |
//! | how much of what memory delivers is used | [`segments`], [`Dram`] |
//! | operations and steps of scans and reductions | [`reduction_operations`], [`kogge_stone_operations`], [`brent_kung_operations`] |
//! | how slow atomics are that now and then miss the cache | [`misses_of_atomics`] |
//! | what a bus carries, what a model remembers | [`pcie3_bytes_per_second`], [`kv_cache_bytes`], [`perplexity`] |
//!
//! They are models. WGSL does not promise how threads map to subgroups, and wgpu does not report how large a
//! multiprocessor is, which is known for some cards by name. Unknown results are reported as such.
//!
//! [`Plan::report`](crate::Plan::report) gives their results for a plan; the `explain` example, for every variant of
//! an op.

mod atomics;
mod coalescing;
mod convolution;
mod divergence;
mod matmul;
mod occupancy;
mod roofline;
mod steps;
mod transfers;

pub use atomics::misses_of_atomics;
pub use coalescing::{Dram, Interleaving, segments};
pub use convolution::{Axis, reads_from_shared};
pub use divergence::{Divergence, branch_seconds, divergence, lane_position, loop_passes};
pub use matmul::Matmul;
pub use occupancy::{Block, Multiprocessor, Occupancy, occupancy};
pub use roofline::{Roofline, amdahl, amdahl_bound, flops_at, reuse_for_peak};
pub use steps::{
    brent_kung_operations, brent_kung_steps, coarsened_steps, kogge_stone_operations, reduction_operations,
    uncoarsened_steps,
};
pub use transfers::{kv_cache_bytes, pcie3_bytes_per_second, perplexity};
