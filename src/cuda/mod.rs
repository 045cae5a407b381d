//! The executor on CUDA, for NVIDIA's cards, behind the feature `cuda`.
//!
//! Its kernels are CUDA C++ files under `shaders/`, beside their WGSL twins. An op that has one implements [`CudaOp`]:
//! descriptor and [`CudaProfile`] make a [`CudaProgram`], plain data that is tested without a device.

#[cfg(feature = "attention")]
mod attention;
mod buffer;
#[cfg(feature = "conv")]
mod conv;
#[cfg(feature = "dense")]
mod dense;
mod device;
mod elementwise;
mod executable;
mod form;
#[cfg(target_os = "linux")]
mod interop;
mod nvrtc;
#[cfg(feature = "primitives")]
mod primitives;
mod program;
mod source;
mod stream;
#[cfg(any(feature = "dense", feature = "attention"))]
mod tile;
mod variant;

pub use buffer::{CudaBuffer, CudaSlice, PinnedBuffer, PinnedSlice, RawCudaSlice};
pub use device::{CudaFilter, CudaGpu, CudaOptions};
pub use executable::CudaExecutable;
#[cfg(target_os = "linux")]
pub use interop::{Bridge, Order};
pub use nvrtc::Nvrtc;

pub use crate::store::{CacheDir, CacheReport};
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
    type Samples = fn(&CudaProfile) -> Result<Vec<CudaProgram>>;
    let families: &[Samples] = &[
        #[cfg(feature = "attention")]
        attention::samples,
        #[cfg(feature = "conv")]
        conv::samples,
        #[cfg(feature = "dense")]
        dense::samples,
        elementwise::samples,
        #[cfg(feature = "primitives")]
        primitives::samples,
    ];
    let mut programs = Vec::new();
    for family in families {
        programs.extend(family(profile)?);
    }
    Ok(programs)
}
