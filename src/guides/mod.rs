//! Guides of one page each, with code that compiles: start with the page that names your task.
//!
//! | guide | read it to |
//! |---|---|
//! | [`coming_from_cuda`] | find the op for a function of CUB, Thrust, cuBLAS or cuRAND |
//! | [`own_device`] | use tilework on a wgpu device that your program owns |
//! | [`browser`] | run ops in a page, from Rust or JavaScript |
//! | [`own_kernel`] | write a WGSL kernel and build it from the library's fragments |
//! | [`precision`] | choose between speed, accuracy and the same bits in every run |
//! | [`device_counts`] | launch work on a count that only the device knows |
//! | [`training`] | train a network, with a schedule of rates and checkpoints |
//! | [`profiling`] | find the slow op, and the fastest variant for your device |
//! | [`larger_than_memory`] | process more data than the device holds |
//! | [`shards`] | work on several devices, and predict the gain |
//! | [`cuda`] | run ops on an NVIDIA card through CUDA, beside wgpu or alone |
//! | [`testing_kernels`] | find races and bad accesses in a kernel without a GPU |
//! | [`ops`] | look up an op by its name |
//!
//! [`architecture`](crate::architecture) explains how the crate itself is built.

#[doc = include_str!("browser.md")]
pub mod browser {}
#[allow(unused_imports, reason = "links of the page")]
pub mod coming_from_cuda {
    #![doc = include_str!("coming_from_cuda.md")]
    use crate::{guides::*, *};
}
#[doc = include_str!("cuda.md")]
pub mod cuda {}
#[doc = include_str!("device_counts.md")]
pub mod device_counts {}
#[doc = include_str!("larger_than_memory.md")]
pub mod larger_than_memory {}
#[doc = include_str!("ops.md")]
pub mod ops {}
#[doc = include_str!("own_device.md")]
pub mod own_device {}
#[doc = include_str!("own_kernel.md")]
pub mod own_kernel {}
#[doc = include_str!("precision.md")]
pub mod precision {}
#[doc = include_str!("profiling.md")]
pub mod profiling {}
#[doc = include_str!("shards.md")]
pub mod shards {}
#[doc = include_str!("testing_kernels.md")]
pub mod testing_kernels {}
#[doc = include_str!("training.md")]
pub mod training {}
