use super::rows_backward::{RowsBackward, rows_gradient_op};
use crate::program::Domain;

/// Computes the gradient of [`Softmax`](super::Softmax) with respect to its input, row by row: `dx = y (dy - sum(y
/// dy))`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::SoftmaxBackward;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (y, dy) = (gpu.upload(&[0.5f32, 0.5])?, gpu.upload(&[1.0f32, 0.0])?);
/// let dx = gpu.alloc::<f32>(2)?;
/// let plan = SoftmaxBackward::new(1, 2).plan::<f32>(&gpu)?; // one row of 2 elements
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &y, &dy, &dx)?;
/// rec.submit()?;
/// assert_eq!(dx.read()?, [0.25, -0.25]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `y`, the output of [`Softmax`](super::Softmax), `dy` and `dx` have `rows` x `n` elements, row-major. Either extent
/// may be 0. Outputs must not share wgpu buffers with other operands.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// Sums are f32, in a tree of fixed order. A row that holds NaN becomes NaN.
/// [`reference::softmax_backward_bound`](crate::reference::softmax_backward_bound) bounds the error. The same device
/// and inputs give the same bits.
///
/// # Cost
/// About 8 flop for each element. One dispatch, no scratch. `whole` reads and writes each element once.
///
/// # Variants
/// `whole` keeps a row in the registers of at most one workgroup: up to 8192 elements (2048 on software drivers), or a
/// quarter of that if `n` is not a multiple of 4. `passes` takes rows of any length. `auto` (the default) takes
/// `whole` where it fits.
///
/// # Errors
/// - [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest buffer, a row above the largest binding or
///   above the limit of `whole`.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/nn/rows_backward.wgsl` with `softmax_backward.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct SoftmaxBackward {
    rows: RowsBackward,
}

rows_gradient_op! {
    SoftmaxBackward, "softmax-backward", RowsGradient::Softmax("nn/softmax_backward"),
    "the gradient of softmax",
    fn record(y, dy, dx);
    inputs: "y" "(..., n)", "dy" "(..., n)";
    outputs: "dx" "as y"; domains: ("y", Domain::Finite); options:
}
