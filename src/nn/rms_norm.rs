use super::rows::{Rows, norm_op};

/// Scales each row to a mean square of 1, then scales and shifts each column: `output[r, i] = x[r, i] /
/// sqrt(mean(x[r]^2) + eps) * gamma[i] + beta[i]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, gamma) = (gpu.upload(&[3.0f32, -3.0])?, gpu.upload(&[1.0f32, 10.0])?);
/// let output = gpu.alloc::<f32>(2)?;
/// let plan = RmsNorm::new(1, 2).plan::<f32>(&gpu)?; // one row of 2 elements
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &gamma, &output)?;
/// rec.submit()?;
/// let y = output.read()?;
/// assert!((y[0] - 1.0).abs() < 1e-5 && (y[1] + 10.0).abs() < 1e-4);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` and `output` have `rows` x `n` elements, row-major; in a tensor the last axis is the row. `gamma` has n
/// elements; [`with_beta`](Self::with_beta) adds an operand `beta` of n elements. Either extent may be 0. A row must
/// fit one binding. `output` must not share a wgpu buffer with the others.
///
/// # Types
/// f32 and f16; f16 is computed in f32.
///
/// # Precision and determinism
/// Computed in f32, with sums in a tree of fixed order. A row that holds NaN or infinity becomes NaN where its result
/// is not 0; squares that overflow f32 make a row 0, and squares below the smallest normal f32 make it infinite or NaN
/// if `eps` is 0. [`reference::rms_norm_bound`](crate::reference::rms_norm_bound) bounds the error. The same device and
/// inputs give the same bits.
///
/// # Cost
/// About 5 flop for each element. `whole`: one dispatch, no scratch; each element is read and written once. `parts`:
/// three dispatches, 8 bytes of scratch for about 4096 elements; each element is read twice and written once.
///
/// # Variants
/// `whole` keeps a row in the registers of at most one workgroup, up to 16384 elements (4096 on software drivers);
/// `parts` takes rows of any length. `auto` (the default) takes `whole` where it fits.
///
/// # Errors
/// - [`TooLarge`](crate::ErrorKind::TooLarge): `x` above the largest buffer, a row above the largest binding or above
///   the limit of `whole`.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant, lanes that are not a power of two,
///   an `eps` that is negative or not finite.
///
/// # Algorithm
/// B. Zhang and R. Sennrich, *Root Mean Square Layer Normalization*, 2019. `shaders/nn/rows_normalize.wgsl` with
/// `rms_norm.wgsl`, `rows_join.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct RmsNorm {
    rows: Rows,
    beta: bool,
}

norm_op!(RmsNorm, "rms-norm", "nn/rms_norm", "rows normalised to mean square 1, then scaled and shifted by column");
