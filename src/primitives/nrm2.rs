use super::vectors::vector_reduction;
use half::f16;

/// Computes the Euclidean norm of a vector: `result = sqrt(x[0]^2 + x[1]^2 + ... + x[n - 1]^2)`, without overflow or
/// underflow of the squares.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, result) = (gpu.upload(&[3.0f32, -4.0, 0.0])?, gpu.alloc::<f32>(1)?);
/// let plan = Nrm2::new(3).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &result)?;
/// rec.submit()?;
/// assert_eq!(result.read()?, [5.0]);
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
/// Squares are summed in f32, in a tree, those of very small and very large numbers scaled by powers of two. The
/// relative error is about half that of a sum of `n` numbers, and a few units in the last place for the root. A device
/// may take subnormal numbers for 0. An infinity gives infinity, NaN gives NaN. f16 is rounded at the end. The same
/// device gives the same bits in every run.
///
/// # Cost
/// Four operations an element; every element is read once. Two dispatches, one for short vectors, and scratch of a few
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
/// J. L. Blue, *A portable Fortran program to find the Euclidean norm of a vector* (1978);
/// `shaders/primitives/nrm2.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nrm2 {
    n: usize,
    counted: bool,
    increments: crate::program::Increments,
    variant: String,
}

vector_reduction!(Nrm2, "nrm2", "the Euclidean norm, without overflow", Norm, f32 => f32, f16 => f16);
