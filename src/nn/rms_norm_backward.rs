use super::by_name::EPS;
use super::rows::norm_methods;
use super::rows_backward::{RowsBackward, rows_gradient_op};

/// Computes the gradients of [`RmsNorm`](super::RmsNorm) with respect to its input and scale: with `s = 1 /
/// sqrt(mean(x^2) + eps)` and `g = dy gamma` of a row, `dx = s (g - x s^2 mean(g x))`; summed over rows, `dgamma =
/// sum(dy x s)`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::RmsNormBackward;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, gamma) = (gpu.upload(&[3.0f32, -3.0])?, gpu.upload(&[1.0f32, 1.0])?);
/// let (dy, dx) = (gpu.upload(&[1.0f32, 2.0])?, gpu.alloc::<f32>(2)?);
/// let dgamma = gpu.alloc::<f32>(2)?;
/// let plan = RmsNormBackward::new(1, 2).eps(0.0).plan::<f32>(&gpu)?; // one row of 2 elements
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &gamma, &dy, &dx, &dgamma)?;
/// rec.submit()?;
/// assert!((dgamma.read()?[1] + 2.0).abs() < 1e-5);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x`, the input of [`RmsNorm`](super::RmsNorm), `dy` and `dx` have `rows` x `n` elements, row-major; `gamma` and
/// `dgamma` have n. Either extent may be 0. Outputs must not share wgpu buffers with other operands.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// Sums are f32: over rows in a tree of fixed order, over columns by blocks of rows and then over blocks.
/// [`reference::rms_norm_backward_bound`](crate::reference::rms_norm_backward_bound) bounds the error. The same
/// device and inputs give the same bits.
///
/// # Cost
/// About 8 flop for each element. Three dispatches; 8 bytes of scratch for each row, and the sums of at most 128
/// blocks. `x` and `dy` are read twice: for `dx`, which computes the statistics of each row again, and for the sums
/// of columns.
///
/// # Variants
/// `whole` keeps a row in the registers of at most one workgroup: up to 8192 elements (2048 on software drivers), or a
/// quarter of that if `n` is not a multiple of 4. `passes` takes rows of any length. `auto` (the default) takes
/// `whole` where it fits.
///
/// # Errors
/// - [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest buffer, a row above the largest binding or
///   above the limit of `whole`.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant, an `eps` that is negative or not
///   finite.
///
/// # Algorithm
/// `shaders/nn/rows_backward.wgsl` with `rms_norm_backward.wgsl`, then `bias_backward.wgsl` twice.
#[derive(Debug, Clone, PartialEq)]
pub struct RmsNormBackward {
    rows: RowsBackward,
}

impl RmsNormBackward {
    norm_methods!();
}

rows_gradient_op! {
    RmsNormBackward, "rms-norm-backward", RowsGradient::RmsNorm,
    "the gradients of RMS norm: of x and gamma",
    fn record(x, gamma, dy, dx, dgamma);
    inputs: "x" "(..., n)", "gamma" "(n)", "dy" "(..., n)";
    outputs: "dx" "as x", "dgamma" "(n)"; domains: ; options: EPS
}
