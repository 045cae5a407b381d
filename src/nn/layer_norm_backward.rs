use super::by_name::EPS;
use super::rows::norm_methods;
use super::rows_backward::{RowsBackward, rows_gradient_op};

/// Computes the gradients of [`LayerNorm`](super::LayerNorm) with respect to its input, scale and shift: with `d = x
/// - mean(x)`, `s = 1 / sqrt(var(x) + eps)` and `g = dy gamma` of a row, `dx = s (g - mean(g) - d s^2 mean(g d))`;
/// summed over rows, `dgamma = sum(dy d s)` and `dbeta = sum(dy)`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::LayerNormBackward;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, gamma) = (gpu.upload(&[1.0f32, 3.0])?, gpu.upload(&[1.0f32, 1.0])?);
/// let (dy, dx) = (gpu.upload(&[1.0f32, 2.0])?, gpu.alloc::<f32>(2)?);
/// let (dgamma, dbeta) = (gpu.alloc::<f32>(2)?, gpu.alloc::<f32>(2)?);
/// let plan = LayerNormBackward::new(1, 2).plan::<f32>(&gpu)?; // one row of 2 elements
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &gamma, &dy, &dx, &dgamma, &dbeta)?;
/// rec.submit()?;
/// assert_eq!(dbeta.read()?, [1.0, 2.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x`, the input of [`LayerNorm`](super::LayerNorm), `dy` and `dx` have `rows` x `n` elements, row-major; `gamma`,
/// `dgamma` and `dbeta` have n. Either extent may be 0. Outputs must not share wgpu buffers with other operands.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// Sums are f32: over rows in a tree of fixed order, over columns by blocks of rows and then over blocks.
/// [`reference::layer_norm_backward_bound`](crate::reference::layer_norm_backward_bound) bounds the error. The same
/// device and inputs give the same bits.
///
/// # Cost
/// About 8 flop for each element. Four dispatches; 8 bytes of scratch for each row, and the sums of at most 128
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
/// `shaders/nn/rows_backward.wgsl` with `layer_norm_backward.wgsl`, then `bias_backward.wgsl` twice.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerNormBackward {
    rows: RowsBackward,
}

impl LayerNormBackward {
    norm_methods!();
}

rows_gradient_op! {
    LayerNormBackward, "layer-norm-backward", RowsGradient::LayerNorm,
    "the gradients of layer norm: of x, gamma and beta",
    fn record(x, gamma, dy, dx, dgamma, dbeta);
    inputs: "x" "(..., n)", "gamma" "(n)", "dy" "(..., n)";
    outputs: "dx" "as x", "dgamma" "(n)", "dbeta" "(n)"; domains: ; options: EPS
}
