//! Runs ops on NVIDIA cards through CUDA, alone or on buffers that wgpu shares: the feature `cuda`.
//!
//! [`CudaGpu`] opens a card and plans the descriptors of a [`Gpu`](crate::Gpu); a [`CudaStream`] runs the plans; on
//! Linux a `Bridge` opens wgpu's buffers. The guide [`cuda`](crate::guides::cuda) has programs and the list of ops.
//!
//! An op with CUDA kernels implements [`CudaOp`]: it lowers its descriptor for a [`CudaProfile`] to a [`CudaProgram`],
//! which is plain data that tests check without a device. Kernels are CUDA C++ files under `shaders/`, beside their
//! WGSL twins.

#[cfg(feature = "attention")]
mod attention;
#[cfg(feature = "attention")]
mod attention_split;
mod buffer;
#[cfg(feature = "conv")]
mod conv;
#[cfg(feature = "dense")]
mod dense;
mod device;
mod elementwise;
mod executable;
#[cfg(target_os = "linux")]
mod interop;
mod nvrtc;
mod op_call;
#[cfg(all(feature = "nccl", target_os = "linux"))]
mod peers;
#[cfg(feature = "primitives")]
mod primitives;
mod probe;
mod program;
mod source;
#[cfg(all(feature = "nccl", target_os = "linux"))]
pub(crate) mod sparse;
mod stream;
#[cfg(any(feature = "dense", feature = "attention"))]
mod tile;
mod variant;

pub use buffer::{CudaBuffer, CudaSlice, PinnedBuffer, PinnedSlice, RawCudaSlice};
pub use device::{CudaFilter, CudaGpu, CudaOptions};
pub use executable::{CudaExecutable, CudaResources};
#[cfg(target_os = "linux")]
pub use interop::{Bridge, Order};
pub use nvrtc::Nvrtc;

pub use crate::store::{CacheDir, CacheReport};
pub use program::{Arch, Arg, ArgMemory, CudaKernel, CudaOp, CudaProfile, CudaProgram, Launch, Swizzle, TensorMap};
pub use stream::{CudaEvent, CudaStream};
pub use variant::CudaVariant;

use crate::error::Result;

/// Lists all embedded CUDA C++ files under `shaders/`: `primitives/scan_grid.cu`, `cuda/barrier.cuh`, ...
pub fn sources() -> impl Iterator<Item = &'static str> {
    source::names()
}

/// Returns programs that together use every kernel that such a device can run, in every form. A test compiles them.
///
/// # Errors
/// None, unless a sample is invalid.
pub fn samples(profile: &CudaProfile) -> Result<Vec<CudaProgram>> {
    type Samples = fn(&CudaProfile) -> Result<Vec<CudaProgram>>;
    let families: &[Samples] = &[
        #[cfg(feature = "attention")]
        attention::samples,
        #[cfg(feature = "conv")]
        conv::samples,
        #[cfg(feature = "dense")]
        dense::samples,
        #[cfg(all(feature = "dense", feature = "quantize"))]
        dense::int8_samples,
        elementwise::samples,
        probe::samples,
        #[cfg(feature = "primitives")]
        primitives::samples,
        #[cfg(all(feature = "nccl", target_os = "linux"))]
        sparse::cg_stream::samples,
    ];
    let mut programs = Vec::new();
    for family in families {
        programs.extend(family(profile)?);
    }
    Ok(programs)
}
