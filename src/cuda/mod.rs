//! The executor on CUDA, for NVIDIA's cards, behind the feature `cuda`.
//!
//! Its kernels are CUDA C++ files under `shaders/`, beside their WGSL twins. An op that has one implements [`CudaOp`]:
//! descriptor and [`CudaProfile`] make a [`CudaProgram`], plain data that is tested without a device.

mod buffer;
mod conv;
mod dense;
mod device;
mod elementwise;
mod executable;
mod nvrtc;
mod primitives;
mod program;
mod source;
mod stream;
mod tile;
mod variant;

pub use buffer::{CudaBuffer, CudaSlice, PinnedBuffer, PinnedSlice, RawCudaSlice};
pub use device::{CudaFilter, CudaGpu, CudaOptions, KernelCache};
pub use executable::CudaExecutable;
pub use nvrtc::Nvrtc;

pub use program::{
    Arch, Arg, CudaKernel, CudaOp, CudaProfile, CudaProgram, Launch, Place, Swizzle, TensorMap,
};
pub use stream::{CudaEvent, CudaStream};
pub use variant::CudaVariant;

use crate::error::Result;

/// Names of all embedded CUDA C++ files under `shaders/`: `primitives/scan_grid.cu`, `cuda/barrier.cuh`.
pub fn sources() -> impl Iterator<Item = &'static str> {
    source::names()
}

/// Programs that together reach every kernel in every form that such a device has: what a test compiles.
///
/// # Errors
/// None, unless a sample is not what its op takes.
pub fn samples(profile: &CudaProfile) -> Result<Vec<CudaProgram>> {
    let families = [elementwise::samples, primitives::samples, dense::samples, conv::samples];
    let mut programs = Vec::new();
    for family in families {
        programs.extend(family(profile)?);
    }
    Ok(programs)
}
