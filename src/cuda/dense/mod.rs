//! Lowerings of dense linear algebra for CUDA.

mod gemm;

pub(super) use gemm::samples;
