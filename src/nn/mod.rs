//! Layers of networks beside the matrix product.
//!
//! | want | take |
//! |---|---|
//! | rows as probabilities, or their logarithms | [`Softmax`], [`LogSoftmax`] |
//! | rows of mean 0 and variance 1, or of mean square 1 | [`LayerNorm`], [`RmsNorm`] |
//! | the largest, mean, or root of squares of windows | [`Pool2d`]; its gradient [`Pool2dBackward`] |
//!
//! A fully connected layer is a [`Gemm`](crate::Gemm) with a bias and an [`Activation`](crate::Activation).

mod layer_norm;
mod log_softmax;
mod pool;
mod pool_backward;
mod rms_norm;
mod rows;
mod softmax;
mod windows;

pub use layer_norm::LayerNorm;
pub use log_softmax::LogSoftmax;
pub use pool::{Pool2d, Pool2dBias, PoolKind};
pub use pool_backward::Pool2dBackward;
pub use rms_norm::RmsNorm;
pub use rows::WithBeta;
pub use softmax::Softmax;
pub(crate) use windows::Windows;

use crate::program::OpInfo;

/// The ops of this family.
pub const OPS: &[OpInfo] =
    &[softmax::INFO, log_softmax::INFO, layer_norm::INFO, rms_norm::INFO, pool::INFO, pool_backward::INFO];
