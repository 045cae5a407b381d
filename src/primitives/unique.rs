use super::DTYPES;
use super::compact::{Compaction, Keep, VARIANTS};
use crate::program::prelude::*;

/// Copies the first element of each run of equal neighbours to the front of the output, in order.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[7u32, 7, 3, 3, 3, 7])?;
/// let (heads, count) = (gpu.alloc::<u32>(6)?, gpu.alloc::<u32>(1)?);
/// let plan = Unique::new(6).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &heads, &count)?;
/// rec.submit()?;
/// let n = count.read()?[0] as usize;
/// assert_eq!(heads.slice(..n)?.read()?, [7, 3, 7]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` and `output` have `n` elements each, and `count` has one `u32`, the number of runs. Elements of `output`
/// behind the runs are not written. Operands must not share a buffer. `n` may be 0. Sorted input gives each value
/// once.
///
/// # Precision and determinism
/// Floats are compared by value: -0 equals +0, and NaN equals nothing, so each NaN is a run of its own. A run has
/// the bits of its first element. Integers are compared by bits. Every variant gives the same result in every run.
///
/// # Cost
/// `lookback` reads the input once, in two dispatches and 8 bytes of scratch for each tile of 8192 or more
/// elements. The others read it twice, in four dispatches and 4 bytes for each 4096 elements. Outputs are written
/// once.
///
/// # Variants
/// As [`Select`](crate::Select).
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): an element type other than `f32`, `f16`, `i32` and `u32`, or a
///   variant that the device cannot run.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the device's largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// As [`Select`](crate::Select); `shaders/primitives/unique.wgsl` keeps the heads of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    n: usize,
    counted: bool,
    variant: String,
}

impl Unique {
    /// Keeps one element of each run among `n`.
    pub fn new(n: usize) -> Self {
        Self { n, counted: false, variant: "auto".to_owned() }
    }

    counted!(counted, "elements", "Elements behind it are ignored.");

    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (keep, outputs) = (&Keep::Heads, &[("output", dtype)]);
        let (n, variant) = (self.n, self.variant.as_str());
        let compaction = Compaction {
            op: "unique",
            scatter: "primitives/select",
            keep,
            variant,
            variants: VARIANTS,
            leave_out: 0,
            n,
            counted: self.counted,
            dtype,
            outputs,
        };
        let mut c = compaction.lower(profile)?;
        let output = c.operand("output");
        c.scatter(output);
        Ok(c.program)
    }
}

operands! {
    impl[T: Element,] Unique, T {
        fn record(input: T, output: T, count: u32);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Unique: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "unique",
    about: "the first of each run of equal neighbours",
    inputs: &[Input::new("input", "(n)")],
    outputs: &[("output", "(count)")],
    types: &DTYPES,
    options: &[LENGTH],
    domains: &[("input", Domain::Runs)],
    make: Some(make),
    variants: Unique::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    let length = asked.length(1, vec![n])?.0;
    let op = Unique::new(n).when(length.is_some(), Unique::counted).variant(asked.variant());
    let dtype = input.dtype();
    let operands = [Role::Given(input)].into_iter().chain(length).chain([Role::Counted, Role::Count]).collect();
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Unique::new(10_000).variant(variant);
    Ok(vec![
        Op::<f32>::lower(&op, profile)?,
        Op::<f16>::lower(&op, profile)?,
        Op::<u32>::lower(&op, profile)?,
        Op::<u32>::lower(&op.counted(), profile)?,
    ])
}
