use super::DTYPES;
use super::made::{self, MADE, VARIANTS};
use crate::program::prelude::*;

/// Subtracts from each element the one before: `output[i] = input[i] - input[i - 1]`; the first stays as it is.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1u32, 2, 4, 8])?, gpu.alloc::<u32>(4)?);
/// let plan = AdjacentDifference::new(4).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [1, 1, 2, 4]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` and `output` have `n` elements, of f32, f16, i32 or u32. `n` may be 0. They must be different wgpu
/// buffers. With [`counted`](Self::counted) an operand `length` of one u32 holds the number of elements.
///
/// # Precision and determinism
/// f32 and f16 round once; a device may take subnormal f32 numbers for 0. Integers wrap modulo 2^32. The first element
/// keeps its bits. The same device gives the same bits in every run. An inclusive [`Scan`](crate::Scan) of the
/// differences of integers gives the elements back.
///
/// # Cost
/// Every element is read twice and written once. One dispatch, no scratch.
///
/// # Variants
/// `words`: a thread makes a word of 32 bits.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/primitives/adjacent_difference.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdjacentDifference {
    n: usize,
    counted: bool,
    variant: String,
}

impl AdjacentDifference {
    /// Takes a vector of `n` elements.
    pub fn new(n: usize) -> Self {
        Self { n, counted: false, variant: "auto".into() }
    }

    counted!(counted, "elements", "There may be anything behind it in the output.");
    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let kernel = (INFO.name, "primitives/adjacent_difference");
        let mut program = made::lower(kernel, (self.n, 0, self.counted), &self.variant, dtype, profile)?;
        program.cost.flop = self.n as f64;
        Ok(program)
    }
}

operands! {
    impl[T: Element,] AdjacentDifference, T {
        fn record(input: T, output: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(AdjacentDifference: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "adjacent-difference",
    about: "each element less the one before; the first as it is",
    types: &DTYPES,
    make: Some(make),
    samples,
    ..MADE
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (operands, dtype, n, counted) = made::asked_elements(asked)?;
    let op = AdjacentDifference::new(n).variant(asked.variant()).when(counted, AdjacentDifference::counted);
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = AdjacentDifference::new(1001).variant(variant);
    Ok(vec![
        Op::<f32>::lower(&op, profile)?,
        Op::<f16>::lower(&op, profile)?,
        Op::<i32>::lower(&op, profile)?,
        Op::<u32>::lower(&op, profile)?,
        Op::<f16>::lower(&op.counted(), profile)?,
    ])
}
