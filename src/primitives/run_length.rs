use super::DTYPES;
use super::compact::{Compaction, Keep, VARIANTS};
use crate::program::prelude::*;

kernel_params! {
    struct CloseParams { n: u32, tiles: u32 }
}

/// Encodes runs of equal neighbours: the first element of each run, and the length of the run.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[7u32, 7, 3, 3, 3, 7])?;
/// let (values, counts, runs) = (gpu.alloc::<u32>(6)?, gpu.alloc::<u32>(6)?, gpu.alloc::<u32>(1)?);
/// let plan = RunLength::new(6).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &values, &counts, &runs)?;
/// rec.submit()?;
/// let n = runs.read()?[0] as usize;
/// assert_eq!(values.slice(..n)?.read()?, [7, 3, 7]);
/// assert_eq!(counts.slice(..n)?.read()?, [2, 3, 1]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input`, `values` and `counts` (`u32`) have `n` elements each, and `count` has one `u32`, the number of runs.
/// Elements of `values` and `counts` behind the runs are not written. Operands must not share a buffer. `n` may be
/// 0.
///
/// # Precision and determinism
/// Floats are compared by value: -0 equals +0, and NaN equals nothing, so each NaN is a run of its own. A run has
/// the bits of its first element. Integers are compared by bits. Every variant gives the same result in every run.
///
/// # Cost
/// As [`Unique`](crate::Unique), with one more small dispatch for runs that end in another tile than they begin in,
/// and 8 bytes of scratch for each tile.
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
/// As [`Unique`](crate::Unique). Each head writes the length of the run before it:
/// `shaders/primitives/run_length.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLength {
    n: usize,
    counted: bool,
    variant: String,
}

impl RunLength {
    /// Encodes the runs of `n` elements.
    pub fn new(n: usize) -> Self {
        Self { n, counted: false, variant: "auto".to_owned() }
    }

    counted!(counted, "elements", "Elements behind it are ignored.");

    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (keep, outputs) = (&Keep::Heads, &[("values", dtype), ("counts", DType::U32)]);
        let (n, variant) = (self.n, self.variant.as_str());
        let compaction = Compaction {
            op: "run-length",
            scatter: "primitives/run_length",
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
        let edges = c.program.scratch(8 * u64::from(c.tiles()));
        let lengths = c.operand("counts");
        c.spec = c.spec.flag("RUNS", true);
        c.scatter(c.operand("values").into_iter().chain(lengths).chain([edges]));
        if n > 0 {
            let spec = limited(Spec::new(), self.counted, 4);
            let kernel = Kernel::library("primitives/run_length_close", "run_length_close", spec);
            let kernel = c.program.kernel(kernel);
            let bindings = [edges, c.total].into_iter().chain(lengths).chain(c.operand("length")).collect();
            let params = CloseParams { n: n as u32, tiles: c.tiles() };
            c.program.dispatch(kernel, &params, bindings, Grid::fold(u64::from(c.tiles()).div_ceil(256)));
        }
        Ok(c.program)
    }
}

operands! {
    impl[T: Element,] RunLength, T {
        fn record(input: T, values: T, counts: u32, count: u32);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(RunLength: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "run-length",
    about: "the first of each run of equal neighbours, and its length",
    inputs: &[Input::new("input", "(n)")],
    outputs: &[("values", "(count)"), ("lengths", "u32 (count)")],
    types: &DTYPES,
    options: &[LENGTH],
    domains: &[("input", Domain::Runs)],
    make: Some(make),
    variants: RunLength::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    let length = asked.length(1, vec![n])?.0;
    let op = RunLength::new(n).when(length.is_some(), RunLength::counted).variant(asked.variant());
    let dtype = input.dtype();
    let operands =
        [Role::Given(input)].into_iter().chain(length).chain([Role::Counted, Role::Counted, Role::Count]).collect();
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = RunLength::new(10_000).variant(variant);
    Ok(vec![
        Op::<f32>::lower(&op, profile)?,
        Op::<f16>::lower(&op, profile)?,
        Op::<u32>::lower(&op, profile)?,
        Op::<u32>::lower(&op.counted(), profile)?,
    ])
}
