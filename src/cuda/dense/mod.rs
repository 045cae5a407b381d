//! Lowerings of dense linear algebra for CUDA.

mod gemm;
mod wgmma;

pub(super) use gemm::samples;
