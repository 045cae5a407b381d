//! References.

mod activation;
mod gemm;

pub use activation::activate;
pub use gemm::{gemm, gemm_bound};
