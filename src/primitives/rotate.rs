//! Elements rotated.

use super::made::{self, MADE, VARIANTS};
use crate::element::{DType, Element};
use crate::error::Result;
use crate::program::{
    Asked, DeviceProfile, Op, OpCall, Operation, Program, Role, Setting, by_type, lowered_as, operands,
};
use half::f16;

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
/// buffers.
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
/// - [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest binding.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/primitives/rotate.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotate {
    n: usize,
    by: i64,
    variant: String,
}

impl Rotate {
    /// Takes a vector of `n` elements and the number of places, which may be negative or above `n`: places to the right
    /// are negative.
    pub fn new(n: usize, by: i64) -> Self {
        Self { n, by, variant: "auto".into() }
    }

    crate::program::variants!(variant);

    /// The length, and the places to the left.
    pub(crate) fn places(&self) -> (usize, usize) {
        (self.n, (i128::from(self.by)).rem_euclid(self.n.max(1) as i128) as usize)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (n, by) = self.places();
        made::lower((INFO.name, "primitives/rotate"), (n, by as u32), &self.variant, dtype, profile)
    }
}

operands! {
    impl[T: Element,] Rotate, T {
        fn record(input: T, output: T);
    }
}

lowered_as!(Rotate: f32, f16, i32, u32, u8, i8);

pub(super) const INFO: Operation = Operation {
    name: "rotate",
    about: "the elements from number `by` on, then those before it",
    options: &[Setting::number("by", "1")],
    make: Some(make),
    samples,
    ..MADE
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    let op = Rotate::new(n, asked.settings().number("by")?).variant(asked.variant());
    let (dtype, operands) = (input.dtype(), vec![Role::Given(input), Role::Result(vec![n])]);
    by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Rotate::new(1001, 3).variant(variant);
    Ok(vec![Op::<f32>::lower(&op, profile)?, Op::<f16>::lower(&op, profile)?, Op::<u8>::lower(&op, profile)?])
}
