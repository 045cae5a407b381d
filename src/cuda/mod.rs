//! The executor on CUDA, for NVIDIA's cards, behind the feature `cuda`.
//!
//! Its kernels are CUDA C++ files under `shaders/`, beside their WGSL twins. An op that has one implements [`CudaOp`]:
//! descriptor and [`CudaProfile`] make a [`CudaProgram`], plain data that is tested without a device.

mod buffer;
mod device;
mod executable;
mod nvrtc;
mod program;
mod source;
mod stream;

pub use buffer::{CudaBuffer, CudaSlice, PinnedBuffer, PinnedSlice, RawCudaSlice};
pub use device::{CudaFilter, CudaGpu, CudaOptions, KernelCache};
pub use executable::CudaExecutable;
pub use nvrtc::Nvrtc;

pub use program::{
    Arch, Arg, CudaKernel, CudaOp, CudaProfile, CudaProgram, Launch, Place, Swizzle, TensorMap,
};
pub use stream::{CudaEvent, CudaStream};

/// Names of all embedded CUDA C++ files under `shaders/`: `primitives/scan_grid.cu`, `cuda/barrier.cuh`.
pub fn sources() -> impl Iterator<Item = &'static str> {
    source::names()
}
