use super::search::{self, SEARCH, SearchForm, VARIANTS, search_lengths};
use crate::program::prelude::*;

/// Finds the first place for each needle in sorted elements: `output[j]` is the number of elements of `sorted` that are
/// below `needles[j]`, as `std::lower_bound` and `numpy.searchsorted` give it.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (sorted, needles) = (gpu.upload(&[1u32, 4, 4, 9])?, gpu.upload(&[0u32, 4, 5, 10])?);
/// let places = gpu.alloc::<u32>(4)?;
/// let plan = LowerBound::new(4, 4).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &sorted, &needles, &places)?;
/// rec.submit()?;
/// assert_eq!(places.read()?, [0, 1, 3, 4]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `sorted` has `n` elements in ascending order, as [`RadixSort`](crate::RadixSort) leaves them; `needles` and `output`
/// (u32) have any length. Each may be 0. Inputs may share a wgpu buffer. With [`counted`](Self::counted) an operand
/// `length` of one u32 holds the number of needles, and with [`sorted_counted`](Self::sorted_counted) an operand
/// `sorted_length` that of the sorted elements.
///
/// # Types and order
/// f32, f16, i32, u32. Floats are compared by value: -0 equals +0; NaN equals NaN and is above all numbers, so that a
/// needle of NaN finds the first NaN, or the end. Elements that are not sorted give some place, at most `n`: with
/// `bisection` the one where halving `0..n` at `begin + (end - begin) / 2` ends.
///
/// # Precision and determinism
/// Exact, and the same on every device; for sorted elements also the same with each variant.
///
/// # Cost
/// `log2(n) + 1` comparisons a needle, each with a load that nearby needles share. `bisection`: one dispatch, no
/// scratch. `tree`: two dispatches; the first reads an eighth of the elements and writes `4 n / 7` bytes of scratch, so
/// that a search reads memory in `log8(n)` places.
///
/// # Variants
/// - `bisection`: a thread finds one needle.
/// - `tree`: first writes an index of every 8th key, every 64th, and so on. For many needles in many elements.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/primitives/lower_bound.wgsl`; the index is a static B+ tree, `search_tree.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowerBound {
    form: SearchForm,
}

impl LowerBound {
    /// Searches `n` sorted elements for this many needles.
    pub fn new(n: usize, needles: usize) -> Self {
        Self { form: SearchForm::new(n, needles) }
    }

    search_lengths!();

    variants!(choose form.variant);
    variants!(list VARIANTS);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let kernel = (INFO.name, "primitives/lower_bound");
        search::lower(kernel, &self.form, dtype, profile)
    }
}

operands! {
    impl[T: Element,] LowerBound, T {
        fn record(sorted: T, needles: T, output: u32);
        /// Takes the number of needles from the device.
        optional with_length(length: u32);
        /// Takes the number of sorted elements from the device.
        optional with_sorted_length(sorted_length: u32);
    }
}

lowered_as!(LowerBound: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "lower-bound",
    about: "for each needle the number of sorted elements that are below it",
    make: Some(make),
    samples,
    ..SEARCH
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (form, dtype, operands) = search::asked(asked)?;
    let op = LowerBound { form };
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = LowerBound::new(100, 10).variant(variant);
    Ok(vec![
        Op::<f32>::lower(&op, profile)?,
        Op::<f16>::lower(&op, profile)?,
        Op::<i32>::lower(&op, profile)?,
        Op::<u32>::lower(&op, profile)?,
        Op::<f16>::lower(&op.clone().counted().sorted_counted(), profile)?,
        Op::<u32>::lower(&op.sorted_counted(), profile)?,
    ])
}
