use super::vectors::vector_reduction;
use half::f16;

/// Finds the first position of the largest magnitude of a vector: the least `i` with `|x[i]| = max |x|`. Positions
/// count from 0; those of BLAS from 1.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, result) = (gpu.upload(&[3.0f32, -4.0, 0.0])?, gpu.alloc::<u32>(1)?);
/// let plan = Iamax::new(3).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &result)?;
/// rec.submit()?;
/// assert_eq!(result.read()?, [1]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` has `n` elements, `result` one u32. They must be different wgpu buffers.
/// [`incx`](Self::incx) is BLAS's increment; positions count the numbers in its order. With
/// [`counted`](Self::counted) an operand `length` of one u32 holds the number of elements.
///
/// # Types
/// f32 and f16.
///
/// # Precision and determinism
/// Exact. The first NaN, if there is one, comes before all numbers.
/// The same device gives the same bits in every run.
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
/// - [`Shape`](crate::ErrorKind::Shape): no elements.
///
/// # Algorithm
/// The reduction of [`Reduce`](crate::Reduce) with `shaders/primitives/iamax.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iamax {
    n: usize,
    counted: bool,
    increments: crate::program::Increments,
    variant: String,
}

vector_reduction!(Iamax, "iamax", "the first position of the largest magnitude", ArgMaxAbs, f32 => u32, f16 => u32);
