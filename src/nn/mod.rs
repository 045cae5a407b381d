//! Layers of neural networks, their gradients, losses and optimizers.
//!
//! | want | take |
//! |---|---|
//! | probabilities of rows, or their logarithms | [`Softmax`], [`LogSoftmax`] |
//! | normalise rows | [`LayerNorm`], [`RmsNorm`] |
//! | normalise channels by given means and variances, or by those of the batch | [`BatchNorm`], [`BatchNormTrain`] |
//! | rotary position embedding | [`Rope`] |
//! | pool windows of images; its gradients | [`Pool2d`]; [`Pool2dBackward`], [`Pool2dBackwardWeights`] |
//! | look up embeddings, rows of a table by index | [`Gather`](crate::Gather) |
//! | average the tokens of each sequence | [`MeanPool`] |
//! | the loss of a classifier, of yes-or-no answers or a regression, with its gradient | [`CrossEntropy`], [`BinaryCrossEntropy`], [`SquaredError`] |
//! | gradients of activations and biases | [`ActivationBackward`], [`BiasBackward`] |
//! | gradients of softmax | [`SoftmaxBackward`], [`LogSoftmaxBackward`] |
//! | gradients of norms | [`LayerNormBackward`], [`RmsNormBackward`], [`BatchNormBackward`] |
//! | draw tokens from logits | [`SampleLogits`] |
//! | drop elements at random while training | [`Dropout`] |
//! | steps of an optimizer | [`Sgd`], [`Adam`] |
//! | run or train layers in sequence as one plan | [`Sequential`] |
//!
//! A fully connected layer is a [`Gemm`](crate::Gemm) with a bias and an [`Activation`](crate::Activation); a
//! convolution layer is a [`Conv2d`](crate::Conv2d).
mod activation_backward;
mod adam;
mod batch_channels;
mod batch_norm;
mod batch_norm_backward;
mod batch_norm_train;
mod batch_program;
mod batch_resident;
mod bias_backward;
mod binary_cross_entropy;
mod by_name;
mod columns;
mod cross_entropy;
mod dropout;
mod layer_norm;
mod layer_norm_backward;
mod log_softmax;
mod log_softmax_backward;
mod mean_loss;
mod mean_pool;
mod pool;
mod pool_backward;
mod pool_backward_weights;
mod rms_norm;
mod rms_norm_backward;
mod rope;
mod rows;
mod rows_backward;
mod sample_logits;
mod sequential;
mod sgd;
mod softmax;
mod softmax_backward;
mod squared_error;
mod windows;

pub use activation_backward::ActivationBackward;
pub use adam::Adam;
pub use batch_norm::BatchNorm;
pub use batch_norm_backward::BatchNormBackward;
pub use batch_norm_train::BatchNormTrain;
pub use bias_backward::BiasBackward;
pub use binary_cross_entropy::BinaryCrossEntropy;
pub use cross_entropy::CrossEntropy;
pub use dropout::Dropout;
pub use layer_norm::LayerNorm;
pub use layer_norm_backward::LayerNormBackward;
pub use log_softmax::LogSoftmax;
pub use log_softmax_backward::LogSoftmaxBackward;
pub use mean_pool::MeanPool;
pub use pool::{Pool2d, PoolKind};
pub use pool_backward::Pool2dBackward;
pub use pool_backward_weights::Pool2dBackwardWeights;
pub use rms_norm::RmsNorm;
pub use rms_norm_backward::RmsNormBackward;
pub use rope::Rope;
pub use sample_logits::SampleLogits;
pub use sequential::{Forward, Gradient, Loss, Optimizer, Parameter, Sequential, Train};
pub use sgd::Sgd;
pub use softmax::Softmax;
pub use softmax_backward::SoftmaxBackward;
pub use squared_error::SquaredError;
pub(crate) use windows::Windows;

use crate::program::Operation;

/// The ops of this family.
pub const OPS: &[Operation] = &[
    softmax::INFO,
    log_softmax::INFO,
    layer_norm::INFO,
    rms_norm::INFO,
    rope::INFO,
    pool::INFO,
    pool_backward::INFO,
    pool_backward_weights::INFO,
    batch_norm::INFO,
    batch_norm_train::INFO,
    cross_entropy::INFO,
    squared_error::INFO,
    binary_cross_entropy::INFO,
    activation_backward::INFO,
    bias_backward::INFO,
    softmax_backward::INFO,
    log_softmax_backward::INFO,
    layer_norm_backward::INFO,
    rms_norm_backward::INFO,
    batch_norm_backward::INFO,
    sgd::INFO,
    adam::INFO,
    mean_pool::INFO,
    dropout::INFO,
    sample_logits::INFO,
];
