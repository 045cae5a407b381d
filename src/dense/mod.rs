//! Dense linear algebra: the matrix product, the matrix-vector product, transposition.
//!
//! [`Gemm`] computes `C = activation(alpha op(A) op(B) + beta C + bias)` for row-major matrices of any shape, of
//! `f32`, [`f16`](half::f16) or both ([`Gemm::mixed_precision`]). It covers the plain product, adding to C (`beta`
//! = 1), transposed factors, blocks of larger matrices (leading dimensions) and a fully connected layer
//! ([`Gemm::with_bias`], [`Gemm::with_row_bias`] and an [`Activation`]). [`GemmBatched`] multiplies many pairs of
//! matrices of one shape, which may lie in larger ones: heads of attention, windows, one weight for all.
//! [`GemmGrouped`] multiplies pairs of different shapes, and pairs whose places the device knows.
//!
//! [`Precision`] chooses how a product is computed. By default factors of f32 are multiplied in f32, and factors of f16
//! on cooperative matrices (tensor cores) where the device has them, with sums of f32. f32 runs there on request,
//! rounded to f16, or split into two halves that keep nearly all of its precision.
//!
//! [`Trsm`] solves triangular systems, [`Trmm`] multiplies by a triangular matrix, [`Syrk`] a matrix by its transpose,
//! [`Syr2k`] two matrices by each other's, and [`Symm`] by a symmetric matrix; all on these products.
//!
//! [`Symv`], [`Trmv`], [`Gbmv`], [`Trsv`], [`Syr`] and [`Syr2`] take symmetric, triangular and band matrices and
//! vectors, stored whole, as bands or as packed triangles.
//!
//! [`Rot`], [`Rotg`], [`Rotmg`] and [`Swap`] are those of BLAS's level 1. [`Cgemm`], [`Cgemv`], [`Cdot`] and [`Caxpy`]
//! take complex numbers, two `f32` each.
//!
//! [`Gemv`] computes `y = alpha op(A) x + beta y` at the speed of memory. [`Transpose`] turns rows into columns,
//! for elements of any type. [`PermuteAxes`], [`StridedCopy`], [`PadAxes`] and [`Concatenate`] move arrays of several
//! axes.

mod banded;
mod caxpy;
mod cdot;
mod cgemm;
mod cgemv;
mod concatenate;
mod gbmv;
mod gemm;
mod gemm_batched;
mod gemm_grouped;
mod gemv;
mod ger;
mod pad_axes;
mod permute_axes;
mod precision;
mod product;
mod rank_update;
mod rot;
mod rotg;
mod rotmg;
mod strided_copy;
mod swap;
mod symm;
mod symv;
mod syr;
mod syr2;
mod syr2k;
mod syrk;
mod transpose;
mod triangle;
mod trmm;
mod trmv;
mod trsm;
mod trsv;

pub use crate::elementwise::Activation;
pub(crate) use banded::{BandMatrix, HalfMatrix};
pub use caxpy::Caxpy;
pub use cdot::Cdot;
pub use cgemm::Cgemm;
pub use cgemv::Cgemv;
pub use concatenate::Concatenate;
pub use gbmv::Gbmv;
pub use gemm::Gemm;
pub use gemm_batched::GemmBatched;
pub use gemm_grouped::GemmGrouped;
pub use gemv::Gemv;
pub use ger::Ger;
pub use pad_axes::{PadAxes, PadMode};
pub use permute_axes::PermuteAxes;
pub use precision::Precision;
#[cfg(feature = "cuda")]
pub(crate) use product::ProductTypes;
pub(crate) use product::{
    BatchLayout, DenseLayout, Division, Product, ProductParams, RegisterForm, RowEnd, StepCount, WalkedKernel,
    batch_seconds, dispatch_chunks, dispatch_flop, predict, register_sides, tiles,
};
pub use product::{ProductTile, ThreadTile};
pub use rot::Rot;
pub use rotg::Rotg;
pub use rotmg::Rotmg;
pub use strided_copy::StridedCopy;
pub use swap::Swap;
pub use symm::Symm;
pub use symv::Symv;
pub use syr::Syr;
pub use syr2::Syr2;
pub use syr2k::Syr2k;
pub use syrk::Syrk;
pub use transpose::Transpose;
pub use trmm::Trmm;
pub use trmv::Trmv;
pub use trsm::Trsm;
pub use trsv::Trsv;

use crate::program::Operation;

/// The ops of this family.
pub const OPS: &[Operation] = &[
    gemm::INFO,
    gemm_batched::INFO,
    gemm_grouped::INFO,
    gemv::INFO,
    transpose::INFO,
    permute_axes::INFO,
    strided_copy::INFO,
    pad_axes::INFO,
    concatenate::INFO,
    ger::INFO,
    symv::INFO,
    trmv::INFO,
    trsv::INFO,
    gbmv::INFO,
    syr::INFO,
    syr2::INFO,
    trsm::INFO,
    trmm::INFO,
    syrk::INFO,
    syr2k::INFO,
    symm::INFO,
    rot::INFO,
    rotg::INFO,
    rotmg::INFO,
    swap::INFO,
    caxpy::INFO,
    cdot::INFO,
    cgemv::INFO,
    cgemm::INFO,
];
