use super::vectors::vector_reduction;
use half::f16;

/// Sums the magnitudes of a vector: `result = |x[0]| + |x[1]| + ... + |x[n - 1]|`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, result) = (gpu.upload(&[3.0f32, -4.0, 0.0])?, gpu.alloc::<f32>(1)?);
/// let plan = Asum::new(3).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &result)?;
/// rec.submit()?;
/// assert_eq!(result.read()?, [7.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` has `n` elements, `result` one; `n` may be 0, which gives 0. They must be different wgpu buffers.
/// [`incx`](Self::incx) is BLAS's increment. With [`counted`](Self::counted) an operand `length` of one u32 holds the
/// number of elements.
///
/// # Types
/// f32 and f16.
///
/// # Precision and determinism
/// Magnitudes are summed in f32, in a tree: the error is at most that of [`Reduce`](crate::Reduce). f16 is rounded at
/// the end. The same device gives the same bits in every run.
///
/// # Cost
/// Two operations an element; every element is read once. Two dispatches, one for short vectors, and scratch of a few
/// KiB.
///
/// # Variants
/// `coarsened`, as of [`Reduce`](crate::Reduce).
///
/// # Errors
/// - [`TooLarge`](crate::ErrorKind::TooLarge): `x` is above the largest buffer.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// The reduction of [`Reduce`](crate::Reduce) with `shaders/primitives/asum.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asum {
    n: usize,
    counted: bool,
    increments: crate::program::Increments,
    variant: String,
}

vector_reduction!(Asum, "asum", "the sum of magnitudes", SumAbs, f32 => f32, f16 => f16);
