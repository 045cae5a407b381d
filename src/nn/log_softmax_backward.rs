use super::rows_backward::{RowsBackward, rows_gradient_op};
use crate::program::Domain;

/// Computes the gradient of [`LogSoftmax`](super::LogSoftmax) with respect to its input, row by row: `dx = dy -
/// exp(y) sum(dy)`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::LogSoftmaxBackward;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (y, dy) = (gpu.upload(&[0.5f32.ln(); 2])?, gpu.upload(&[1.0f32, 0.0])?);
/// let dx = gpu.alloc::<f32>(2)?;
/// let plan = LogSoftmaxBackward::new(1, 2).plan::<f32>(&gpu)?; // one row of 2 elements
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &y, &dy, &dx)?;
/// rec.submit()?;
/// assert!((dx.read()?[0] - 0.5).abs() < 1e-5);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `y`, the output of [`LogSoftmax`](super::LogSoftmax), `dy` and `dx` have `rows` x `n` elements, row-major. Either
/// extent may be 0. Outputs must not share wgpu buffers with other operands.
///
/// # Precision and determinism
/// [`reference::log_softmax_backward_bound`](crate::reference::log_softmax_backward_bound) bounds the error. The rest,
/// and the types, cost, variants and errors, are those of [`SoftmaxBackward`](super::SoftmaxBackward).
///
/// # Algorithm
/// `shaders/nn/rows_backward.wgsl` with `log_softmax_backward.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSoftmaxBackward {
    rows: RowsBackward,
}

rows_gradient_op! {
    LogSoftmaxBackward, "log-softmax-backward", RowsGradient::Softmax("nn/log_softmax_backward"),
    "the gradient of log-softmax",
    fn record(y, dy, dx);
    inputs: "y" "(..., n)", "dy" "(..., n)";
    outputs: "dx" "as y"; domains: ("y", Domain::Finite); options:
}
