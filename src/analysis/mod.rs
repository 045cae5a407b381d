//! Formulas for the cost of a kernel before it runs: pure functions, each tested on known answers.
//!
//! | question | take |
//! |---|---|
//! | how much faster parallel work can get | [`amdahl`] |
//! | whether memory or arithmetic limits a kernel, and how much reuse would change that | [`Roofline`], [`reuse_for_peak`] |
//! | how many workgroups fit on a multiprocessor, and what limits them | [`occupancy`], [`Multiprocessor::of_adapter`] |
//! | which subgroups run both sides of a branch | [`divergence`], [`branch_seconds`] |
//! | how much a matrix product reads and computes | [`Matmul`] |
//! | how often a convolution uses each loaded element | [`Axis`] |
//! | how many of the moved bytes are used | [`segments`], [`Dram`] |
//! | operations and steps of scans and reductions | [`reduction_operations`], [`kogge_stone_operations`], [`brent_kung_operations`] |
//! | how much cache misses slow down atomics | [`misses_of_atomics`] |
//! | bandwidth of a bus, size of a KV cache, perplexity | [`pcie3_bytes_per_second`], [`kv_cache_bytes`], [`perplexity`] |
//!
//! These are models. WGSL does not define how threads map to subgroups, and wgpu does not report a multiprocessor's
//! resources; they are known for some cards by name. Unknown results are reported as unknown.
//!
//! [`Plan::report`](crate::Plan::report) applies the formulas to a plan; the `explain` example applies them to every
//! variant of an op.

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
pub use occupancy::{Block, Multiprocessor, Occupancy, occupancy, registers_of_block};
pub use roofline::{Roofline, amdahl, amdahl_bound, flops_at, reuse_for_peak};
pub use steps::{
    brent_kung_operations, brent_kung_steps, coarsened_steps, kogge_stone_operations, reduction_operations,
    uncoarsened_steps,
};
pub use transfers::{kv_cache_bytes, pcie3_bytes_per_second, perplexity};
