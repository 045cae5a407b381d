//! The executor on CUDA, for NVIDIA's cards, behind the feature `cuda`.
//!
//! Its kernels are CUDA C++ files under `shaders/`, beside their WGSL twins. An op that has one implements [`CudaOp`]:
//! descriptor and [`CudaProfile`] make a [`CudaProgram`], plain data that is tested without a device.

mod dense;
mod program;
mod source;
mod tile;
mod variant;

pub use program::{
    Arch, Arg, CudaKernel, CudaOp, CudaProfile, CudaProgram, Launch, Place, Swizzle, TensorMap,
};
pub use variant::CudaVariant;

/// Names of all embedded CUDA C++ files under `shaders/`: `primitives/scan_grid.cu`, `cuda/barrier.cuh`.
pub fn sources() -> impl Iterator<Item = &'static str> {
    source::names()
}
