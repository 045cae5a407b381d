use super::made::{self, MADE, VARIANTS};
use crate::program::prelude::*;

/// Rotates a vector to the left: `output[i] = input[(i + by) mod n]`, as `std::rotate`: element `by` comes first.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1u32, 2, 4, 8])?, gpu.alloc::<u32>(4)?);
/// let plan = Rotate::new(4, 1).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [2, 4, 8, 1]);
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
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant; with a length from the device, 2^31
///   places and more.
///
/// # Algorithm
/// `shaders/primitives/rotate.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotate {
    n: usize,
    by: i64,
    counted: bool,
    variant: String,
}

impl Rotate {
    /// Takes a vector of `n` elements and the number of places, which may be negative or above `n`: places to the right
    /// are negative.
    pub fn new(n: usize, by: i64) -> Self {
        Self { n, by, counted: false, variant: "auto".into() }
    }

    counted!(counted, "elements", "There may be anything behind it in the output.");
    variants!(variant);

    /// The places to the left of `n` elements.
    pub(crate) fn places(&self, n: usize) -> usize {
        (i128::from(self.by)).rem_euclid(n.max(1) as i128) as usize
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (n, mut by) = (self.n, self.places(self.n) as u32);
        if self.counted {
            // The device takes the remainder.
            let whole = i32::try_from(self.by).ok().filter(|by| *by != i32::MIN);
            by = whole.ok_or_else(|| {
                let most = i32::MAX;
                err!(
                    InvalidArgument,
                    "rotate: by is {}; with a length from the device at most {most} either way",
                    self.by
                )
            })? as u32;
        }
        made::lower((INFO.name, "primitives/rotate"), (n, by, self.counted), &self.variant, dtype, profile)
    }
}

operands! {
    impl[T: Element,] Rotate, T {
        fn record(input: T, output: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Rotate: f32, f16, i32, u32, u8, i8);

pub(super) const INFO: Operation = Operation {
    name: "rotate",
    about: "the elements from number `by` on, then those before it",
    options: &[Setting::number("by", "1"), LENGTH],
    make: Some(make),
    samples,
    ..MADE
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (operands, dtype, n, counted) = made::asked_elements(asked)?;
    let op = Rotate::new(n, asked.settings().number("by")?).variant(asked.variant()).when(counted, Rotate::counted);
    by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Rotate::new(1001, 3).variant(variant);
    Ok(vec![
        Op::<f32>::lower(&op, profile)?,
        Op::<f16>::lower(&op, profile)?,
        Op::<u8>::lower(&op, profile)?,
        Op::<f16>::lower(&op.counted(), profile)?,
    ])
}
