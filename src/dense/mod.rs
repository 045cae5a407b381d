//! Dense linear algebra: the matrix product, the matrix-vector product, transposition.
//!
//! [`Gemm`] computes `C = activation(alpha op(A) op(B) + beta C + bias)` for matrices of any shape, row-major,
//! of `f32` or [`f16`](half::f16), or both ([`Gemm::mixed_precision`]). It covers the plain product, the fused
//! multiply-add of matrices (`beta` = 1), transposed factors, parts of larger matrices (leading dimensions) and a
//! fully connected layer ([`Gemm::with_bias`], [`Gemm::with_row_bias`] and an [`Activation`]). [`GemmBatched`]
//! multiplies many pairs of matrices of one shape, which may be parts of larger ones: heads of attention, windows, one
//! weight for all.
//!
//! [`Precision`] says how exact a product is: in f32 unless asked otherwise, and on cooperative matrices (tensor cores) with
//! factors rounded to f16, or split so that next to nothing is lost.
//!
//! [`Gemv`] computes `y = alpha op(A) x + beta y` at the speed of memory, and [`Transpose`] turns rows into columns,
//! of elements of any type.

mod gemm;
mod gemm_batched;
mod gemv;
mod precision;
mod product;
mod transpose;

pub use crate::elementwise::Activation;
pub use gemm::Gemm;
pub use gemm_batched::GemmBatched;
pub use gemv::Gemv;
pub use precision::Precision;
#[cfg(feature = "cuda")]
pub(crate) use product::ProductTypes;
pub(crate) use product::{
    BatchLayout, DenseLayout, Division, Product, ProductParams, ProductTile, RegisterForm, StepCount,
    WalkedKernel, dispatch_bands, dispatch_flop, register_sides, tiles,
};
pub use transpose::Transpose;

use crate::program::Operation;

/// The ops of this family.
pub const OPS: &[Operation] = &[gemm::INFO, gemm_batched::INFO, gemv::INFO, transpose::INFO];
