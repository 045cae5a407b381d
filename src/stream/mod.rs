//! Work on more data than the device holds, chunk by chunk, while the host copies.
//!
//! - [`Streamed`] ([`Gpu::streamed`](crate::Gpu::streamed)): whole ops (map, zip, reduce, scan, histogram, select, sort)
//!   over host data of any length: above one binding, one buffer, and the device's whole memory.
//! - [`Pipeline`]: chunked work of your own. You fill each chunk, record its kernels and drain its results; the pipeline
//!   has several chunks in flight, so that filling, the device's work and draining overlap.
//! - [`Timeline`]: what ran when, as `Pipeline::run` returns it.
//!
//! # What overlaps
//!
//! wgpu has one queue, and its barriers make a copy on the device wait for all kernels before it. So what overlaps is host
//! copies, of filling and of draining on a thread each, with the device's work: uploads, kernels and downloads of
//! different chunks run one after another. A stream takes about as long as the slowest of the three.
//!
//! # Memory
//!
//! All memory is allocated when a stream starts: as many sets of buffers as there are chunks in flight. Filling waits for
//! a free set, so a slow consumer holds up a fast producer. Cards get staging buffers, from the pools that uploads and
//! readbacks use; where device and host share their memory (integrated GPUs, software drivers) the host writes to and
//! reads from the buffers that kernels bind, and nothing is copied twice.

mod chunk;
mod large;
mod merge;
mod pipeline;
mod source;
mod timeline;

pub use chunk::{Chunk, Drained, Fill, Input, Output, Space};
pub use large::Streamed;
pub use merge::SortKey;
pub use pipeline::{Cancel, Outcome, Pipeline};
pub use source::{Items, Reader, Source};
pub use timeline::{Event, Stage, Timeline};
