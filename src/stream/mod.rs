//! Work on more data than the device holds, in chunks, with host copies and device work overlapped.
//!
//! - [`Streamed`] ([`Gpu::streamed`](crate::Gpu::streamed)): whole ops (map, zip, reduce, scan, histogram, select,
//!   sort) over host data of any length: beyond one binding, one buffer, or the device's memory.
//! - [`Pipeline`]: your own work in chunks. You fill each chunk, record its kernels and drain its results. The
//!   pipeline keeps several chunks in flight, so that filling, the device's work and draining overlap.
//! - [`Timeline`]: when each stage of each chunk ran, as `Pipeline::run` returns it.
//!
//! # What overlaps
//!
//! wgpu has one queue, and its barriers make a copy on the device wait for all kernels before it. Uploads, kernels
//! and downloads therefore run one after another. Host copies overlap with them: filling and draining each have a
//! thread. A stream takes about as long as the slowest of filling, the device's work and draining.
//!
//! # Memory
//!
//! All memory is allocated when a stream starts: one set of buffers per chunk in flight. Filling waits for a free
//! set, so a slow consumer holds up a fast producer. Cards use staging buffers from the pools of uploads and
//! readbacks. Where device and host share memory (integrated GPUs, software drivers), the host writes and reads the
//! buffers that kernels bind, and nothing is copied twice.

mod chunk;
mod large;
mod merge;
mod pipeline;
mod source;
mod timeline;

pub use chunk::{Chunk, Drained, Fill, Input, Output, Space};
pub use large::Streamed;
#[cfg(feature = "shard")]
pub(crate) use large::check_results;
pub use merge::SortKey;
pub use pipeline::{Cancel, Outcome, Pipeline};
pub use source::{Items, Reader, Source};
pub use timeline::{Event, Stage, Timeline};
