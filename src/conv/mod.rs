//! Filters, by which every element becomes a weighted sum of its neighbours along one, two or three axes, and
//! convolution layers of networks.
//!
//! | want | take |
//! |---|---|
//! | a filter along a line | [`Filter1d`] |
//! | a filter over an image, of `f32`, `f16` or `u8` | [`Filter2d`] |
//! | a filter over a volume | [`Filter3d`] |
//! | a layer of a network, and its gradients | [`Conv2d`], [`Conv2dBackwardData`], [`Conv2dBackwardWeights`] |
//! | a layer that enlarges | [`ConvTranspose2d`] |
//!
//! A filter computes `output(p) = sum over t of input(p + t - radius) * filter(t)`: correlation, as in networks.
//! For a convolution reverse the filter. The output is as large as the input, and [`Boundary`] says what lies
//! outside.
//! The filter belongs to the descriptor, or is an operand that may change and be learnt.
//!
//! All three filters have the same variants:
//!
//! | variant | what it does |
//! |---|---|
//! | `naive` | each output reads its inputs and the filter from memory |
//! | `constant` | the same, the filter in constant memory: a uniform |
//! | `strategy1` | a workgroup has the size of its tile of outputs; some threads load the halo too |
//! | `strategy2` | a workgroup has the size of its tile of inputs; some threads idle while others compute |
//! | `strategy3` | the tile in workgroup memory, its halo left to the caches |
//! | `register` | several outputs for each thread, sums in registers, vec4 loads; the fastest |
//! | `separable` | (two and three axes) a filter that is a product of lines: sums along one axis after the other |
//!
//! After the variant, a [`Report`](crate::Report) says how often each loaded element is used, by the formulas of
//! [`analysis::Axis`](crate::analysis::Axis).

#[allow(clippy::module_inception, reason = "an op has a file of its name")]
mod conv;
mod conv_backward_data;
mod conv_backward_weights;
mod conv_transpose;
mod correlate;
mod depthwise;
mod filter1d;
mod filter2d;
mod filter3d;
mod layer;
mod lines;
mod predict;
mod product;
mod register;
mod stencil;
mod tiled;
mod winograd;

pub use conv::Conv2d;
pub use conv_backward_data::Conv2dBackwardData;
pub use conv_backward_weights::Conv2dBackwardWeights;
pub use conv_transpose::ConvTranspose2d;
pub use filter1d::Filter1d;
pub use filter2d::Filter2d;
pub use filter3d::Filter3d;
pub(crate) use layer::{Layer, WindowAxis};
pub(crate) use lines::{FilterLines, LinesForm, LinesParams, source, target};
pub(crate) use stencil::Stencil;
pub use stencil::{Boundary, ThreadOutputs};

use crate::program::Operation;

/// The ops of this family.
pub const OPS: &[Operation] = &[
    filter1d::INFO,
    filter2d::INFO,
    filter3d::INFO,
    conv::INFO,
    conv_backward_data::INFO,
    conv_backward_weights::INFO,
    conv_transpose::INFO,
];
