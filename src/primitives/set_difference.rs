use super::sets::{SetForm, kept_of_a};

/// Keeps the elements of a sorted array that another sorted array lacks, as `std::set_difference`: of an element that
/// is `j` times in `a` and `k` times in `b`, the last `max(j - k, 0)` of `a`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (a, b) = (gpu.upload(&[1u32, 4, 4, 9])?, gpu.upload(&[1u32, 4, 5])?);
/// let (output, count) = (gpu.alloc::<u32>(4)?, gpu.alloc::<u32>(1)?);
/// let plan = SetDifference::new(4, 3).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b, &output, &count)?;
/// rec.submit()?;
/// let n = count.read()?[0] as usize;
/// assert_eq!(output.slice(..n)?.read()?, [4, 9]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes, types, order, values and variants
/// As [`SetIntersection`](crate::SetIntersection). No element of `b` goes to `output`.
///
/// # Precision and determinism
/// Bits are moved unchanged. Every variant gives the same result in every run.
///
/// # Cost
/// As [`SetIntersection`](crate::SetIntersection).
///
/// # Errors
/// As [`SetIntersection`](crate::SetIntersection).
///
/// # Algorithm
/// As [`SetIntersection`](crate::SetIntersection); `shaders/primitives/set_difference.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetDifference {
    form: SetForm,
}

kept_of_a!(SetDifference, "set-difference", "the sorted elements of a that b lacks, counted with repeats", alone: true);
