//! Work on several devices: arrays and matrices in shards, one on each.
//!
//! A group of ranks works together. Each [`Rank`] has a device and a link to the others, a [`Transport`]. All ranks
//! make the same calls in the same order, as with MPI and NCCL. [`run`] starts a thread for each device of this
//! process:
//!
//! ```
//! # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
//! use std::time::Duration;
//! use tilework::prelude::*;
//! use tilework::shard;
//!
//! // All adapters of this machine would be `0..Gpu::adapters().len()`, opened by index.
//! let gpus = vec![Gpu::new()?; 2];
//! let shards = shard::run(&gpus, Duration::from_secs(10), |rank| {
//!     let mine: Vec<u32> = (0..1000).map(|i| (i * 7919 + rank.index() as u32) % 1000).collect();
//!     rank.sort(&rank.upload(&mine)?)?.read()
//! })?;
//! assert!(shards.concat().is_sorted());
//! # Ok::<(), tilework::Error>(())
//! ```
//!
//! | want | call |
//! |---|---|
//! | one value, counts, running totals, the largest of an array in shards | [`Rank::reduce`], [`histogram`](Rank::histogram), [`inclusive_scan`](Rank::inclusive_scan), [`top_k`](Rank::top_k) |
//! | the same of a file that no device holds | [`Rank::reduce_file`], [`histogram_file`](Rank::histogram_file) |
//! | a sorted array | [`Rank::sort`] |
//! | a product of matrices in blocks | [`Rank::gemm`] with [`Blocks`] |
//! | the solution of a sparse system | [`Rank::conjugate_gradient`], [`Rank::spmv`] with a [`ShardedMatrix`]; rows by a list: [`partitioned`] |
//! | a trained network | [`Rank::trainer`] |
//! | when devices and links were busy | [`Rank::watch`] |
//! | messages and sums of your own | [`Rank::begin`], [`Rank::all_reduce_slice`], [`Rank::all_gather`], ... |
//! | the time on devices and links that are not here | [`Model`], [`Prediction`] |
//!
//! # Links
//! [`Local`]: threads of one process. Data go from a device to mapped memory of the host, and from there to the other
//! device, with one copy on the host; two cards sum over memory of the host that both reach. `Nccl` (feature `nccl`):
//! between NVIDIA's cards, over NVLink. `Mpi` (feature `mpi`): between processes, on one machine or several.
//!
//! Collective calls are [schedules](schedule), plain data that each link runs and a [`Model`] counts.

mod arrays;
mod both_ways;
mod files;
mod gemm;
mod local;
mod matrix;
mod model;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(all(feature = "nccl", target_os = "linux"))]
mod nccl;
mod partition;
mod rank;
mod regions;
mod ring;
pub mod schedule;
mod solver;
mod sort;
mod timeline;
mod training;
mod transport;

pub use gemm::{Block, Blocks, grid};
pub use local::{Local, run, run_each};
pub use matrix::{ShardedMatrix, balanced_rows};
pub use model::{Counted, Link, Model, Prediction, count};
#[cfg(feature = "mpi")]
pub use mpi::{Mpi, run_mpi};
#[cfg(all(feature = "nccl", target_os = "linux"))]
pub use nccl::{Nccl, run_nccl};
pub use partition::{Partitioned, partitioned, read_partition};
pub use rank::{Rank, Started, Traffic};
pub use schedule::part;
pub use solver::ShardedCg;
pub use timeline::{Activity, RankSpan};
pub use training::Trainer;
pub use transport::{Call, Combine, Exchange, Header, Transport};
