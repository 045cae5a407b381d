use super::rows::{Rows, softmax_op};

/// Computes the logarithm of the softmax of each row: `output[r, i] = x[r, i] - max(x[r]) - log(sum_j exp(x[r, j] -
/// max(x[r])))`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, output) = (gpu.upload(&[0.0f32, 0.0, 1.0, 1.0])?, gpu.alloc::<f32>(4)?);
/// let plan = LogSoftmax::new(2, 2).plan::<f32>(&gpu)?; // 2 rows of 2 elements
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &output)?;
/// rec.submit()?;
/// assert!(output.read()?.iter().all(|y| (y - 0.5f32.ln()).abs() < 1e-5));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` and `output` have `rows` x `n` elements, row-major; in a tensor the last axis is the row. Either extent may be
/// 0. A row must fit one binding. `output` must not share a wgpu buffer with `x`.
///
/// # Types
/// f32 and f16; f16 is computed in f32.
///
/// # Precision and determinism
/// Computed in f32, with sums in a tree of fixed order. Subtracting the maximum avoids overflow and logarithms of 0.
/// A row that holds NaN or +infinity, or only -infinity, becomes NaN; -infinity beside numbers stays -infinity.
/// [`reference::log_softmax_bound`](crate::reference::log_softmax_bound) bounds the error. The same device and inputs
/// give the same bits.
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
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant, lanes that are not a power of two.
///
/// # Algorithm
/// As [`Softmax`](super::Softmax): `shaders/nn/rows_normalize.wgsl` with `log_softmax.wgsl`, `rows_join.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSoftmax {
    rows: Rows,
}

softmax_op!(LogSoftmax, "log-softmax", "nn/log_softmax", "the logarithm of the softmax of each row");
