//! Lowerings of dense linear algebra for CUDA.

mod gemm;
