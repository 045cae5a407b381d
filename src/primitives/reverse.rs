use super::made::{self, MADE, VARIANTS};
use crate::program::prelude::*;

/// Reverses a vector: `output[i] = input[n - 1 - i]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1u32, 2, 4, 8])?, gpu.alloc::<u32>(4)?);
/// let plan = Reverse::new(4).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [8, 4, 2, 1]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` and `output` have `n` elements, of any type of at most 4 bytes. `n` may be 0. They must be different wgpu
/// buffers. With [`counted`](Self::counted) an operand `length` of one u32 holds the number of elements.
///
/// # Precision and determinism
/// Bits are moved unchanged.
///
/// # Cost
/// Every element is read once and written once. One dispatch, no scratch.
///
/// # Variants
/// `words`: a thread makes a word of 32 bits.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/primitives/reverse.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reverse {
    n: usize,
    counted: bool,
    variant: String,
}

impl Reverse {
    /// Takes a vector of `n` elements.
    pub fn new(n: usize) -> Self {
        Self { n, counted: false, variant: "auto".into() }
    }

    counted!(counted, "elements", "There may be anything behind it in the output.");
    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        made::lower((INFO.name, "primitives/reverse"), (self.n, 0, self.counted), &self.variant, dtype, profile)
    }
}

operands! {
    impl[T: Element,] Reverse, T {
        fn record(input: T, output: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Reverse: f32, f16, i32, u32, u8, i8);

pub(super) const INFO: Operation =
    Operation { name: "reverse", about: "the elements from the last to the first", make: Some(make), samples, ..MADE };

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (operands, dtype, n, counted) = made::asked_elements(asked)?;
    let op = Reverse::new(n).variant(asked.variant()).when(counted, Reverse::counted);
    by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Reverse::new(1001).variant(variant);
    Ok(vec![
        Op::<f32>::lower(&op, profile)?,
        Op::<f16>::lower(&op, profile)?,
        Op::<u8>::lower(&op, profile)?,
        Op::<f16>::lower(&op.counted(), profile)?,
    ])
}
