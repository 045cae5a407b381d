//! Quantisation: matrices of bytes with scales, and their products.
//!
//! | want | take |
//! |---|---|
//! | f32 as f16, and back | [`Cast`] |
//! | floats as bytes, with a scale for each row, each group, or all | [`Quantize`] |
//! | floats from bytes and scales | [`Dequantize`] |
//! | the product of matrices of bytes, with scales, bias and activation | [`GemmInt8`] |

mod cast;
mod codes;
mod dequantize;
mod gemm_int8;
#[allow(clippy::module_inception, reason = "an op has a file of its name")]
mod quantize;

pub use cast::Cast;
pub use codes::{Code, Scales};
pub use dequantize::Dequantize;
pub use gemm_int8::GemmInt8;
#[cfg(feature = "cuda")]
pub(crate) use gemm_int8::Int8End;
pub use quantize::Quantize;

use crate::program::Operation;

/// The ops of this family.
pub const OPS: &[Operation] = &[cast::INFO, quantize::INFO, dequantize::INFO, gemm_int8::INFO];
