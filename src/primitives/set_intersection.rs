use super::sets::{SetForm, kept_of_a};

/// Keeps the elements that two sorted arrays share, as `std::set_intersection`: of an element that is `j` times in `a`
/// and `k` times in `b`, the first `min(j, k)` of `a`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (a, b) = (gpu.upload(&[1u32, 4, 4, 9])?, gpu.upload(&[1u32, 4, 5])?);
/// let (output, count) = (gpu.alloc::<u32>(4)?, gpu.alloc::<u32>(1)?);
/// let plan = SetIntersection::new(4, 3).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b, &output, &count)?;
/// rec.submit()?;
/// let n = count.read()?[0] as usize;
/// assert_eq!(output.slice(..n)?.read()?, [1, 4]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `a` and `output` have `n` elements, `b` has `m`, and `count` has one `u32`; each may be 0. Elements of `output`
/// behind the kept ones are not written. Inputs may share a wgpu buffer with each other, and not with outputs. With
/// [`counted`](SetIntersection::counted) the device holds the numbers of elements.
///
/// [`with_values`](SetIntersection::with_values) moves rows of any type with the elements of `a`, as
/// `thrust::set_intersection_by_key` does:
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::DType;
///
/// let gpu = Gpu::new()?;
/// let (a, b) = (gpu.upload(&[1u32, 4, 4, 9])?, gpu.upload(&[1u32, 4, 5])?);
/// let (values, values_out) = (gpu.upload(&[10.0f32, 11.0, 12.0, 13.0])?, gpu.alloc::<f32>(4)?);
/// let (output, count) = (gpu.alloc::<u32>(4)?, gpu.alloc::<u32>(1)?);
/// let plan = SetIntersection::new(4, 3).with_values(DType::F32, 1).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.with_values(&values, &values_out).record(&mut rec, &a, &b, &output, &count)?;
/// rec.submit()?;
/// assert_eq!(values_out.slice(..2)?.read()?, [10.0, 11.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Types and order
/// f32, f16, i32, u32, both arrays ascending, as [`RadixSort`](crate::RadixSort) leaves them. Floats are compared by
/// value: -0 equals +0; NaN equals NaN and is above all numbers. Of arrays that are not sorted, `output` has some
/// elements of `a`, in their order; which is unspecified.
///
/// # Precision and determinism
/// Bits are moved unchanged. Every variant gives the same result in every run, and all the same if the arrays are
/// sorted.
///
/// # Cost
/// `merge-path` reads both arrays once, then `a` again, and takes `n / 8` bytes of scratch, and 4 for each 448 elements
/// of both arrays or more. In the others a thread finds the places of four elements in `b` together, behind that of its
/// last element: about `log2(128 m / n)` comparisons each, whose loads nearby elements share. The rest as
/// [`Select`](crate::Select) by a predicate. Values take a pass more, launched for the count, and 4 bytes of scratch an
/// element of `a`.
///
/// # Variants
/// Those of [`Select`](crate::Select), and
/// - `merge-path`: a walk of the merge of both arrays marks what is kept, and a second pass moves it. GPUs take it
///   unless `b` is more than four times as long as `a`.
///
/// # Errors
/// - [`Unsupported`](crate::ErrorKind::Unsupported): a variant that the device cannot run, values of 64 bits.
/// - [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the device's largest binding; `n + m` of 2^32 and more
///   with `merge-path`.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// As [`Select`](crate::Select), with galloping search: `shaders/primitives/set_partner.wgsl`. Merge path, O. Green,
/// R. McColl and D. Bader (2012): `shaders/primitives/set_union.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetIntersection {
    form: SetForm,
}

kept_of_a!(
    SetIntersection,
    "set-intersection",
    "the sorted elements that a and b share, counted with repeats",
    alone: false
);
