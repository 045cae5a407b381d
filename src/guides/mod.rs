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

/// Pages whose links name items of the root and other pages.
macro_rules! pages {
    ($($page:ident $file:literal)*) => {$(
        #[allow(unused_imports, reason = "links of the page")]
        pub mod $page {
            #![doc = include_str!($file)]
            use crate::{guides::*, *};
        }
    )*};
}

pages! {
    browser "browser.md"
    coming_from_cuda "coming_from_cuda.md"
    cuda "cuda.md"
    device_counts "device_counts.md"
    larger_than_memory "larger_than_memory.md"
    ops "ops.md"
    own_device "own_device.md"
    own_kernel "own_kernel.md"
    precision "precision.md"
    profiling "profiling.md"
    shards "shards.md"
    testing_kernels "testing_kernels.md"
    training "training.md"
}
