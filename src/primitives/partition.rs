use super::DTYPES;
use super::compact::{Compaction, Keep, Predicate, TWO_PASSES};
use super::select::{KEEP, asked_keep};
use crate::program::prelude::*;

/// Copies the elements with a nonzero flag, or those a predicate keeps, to the front, and the others behind them,
/// both in order.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, flags) = (gpu.upload(&[1, 2, 3, 4])?, gpu.upload(&[0u32, 1, 0, 1])?);
/// let (parted, count) = (gpu.alloc::<i32>(4)?, gpu.alloc::<u32>(1)?);
/// let plan = Partition::new(4).plan::<i32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &flags, &parted, &count)?;
/// rec.submit()?;
/// assert_eq!((parted.read()?, count.read()?), (vec![2, 4, 1, 3], vec![2]));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input`, `flags` (`u32`) and `output` have `n` elements each, and `count` has one `u32`, the number of kept
/// elements. [`by`](Self::by) has no `flags`. The count stays on the device: read it, or bind it as the length of
/// the next op. `output` and `count` must not share a buffer with the others. `n` may be 0. With
/// [`counted`](Self::counted) an operand `length` of one u32 holds the number of elements.
///
/// # Precision and determinism
/// Elements move as bits; a predicate sees f16 as f32. Every variant gives the same result in every run, and keeps
/// the order. NaN, infinities, zeros of both signs and subnormal numbers move unchanged.
///
/// # Cost
/// The flags, or the elements a predicate tests, are read twice, all else once; outputs are written once; `4 n /
/// 4096` bytes of scratch; four dispatches. One pass cannot know where the others begin.
///
/// # Variants
/// `hierarchical` and `subgroup`; `auto` (the default) takes `subgroup` on devices with subgroups for fewer than
/// 2^22 elements.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): an element type other than `f32`, `f16`, `i32` and `u32`, or a
///   variant that the device cannot run.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the device's largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
/// - [`Shader`](ErrorKind::Shader): a predicate that does not compile.
///
/// # Algorithm
/// Count, scan, scatter (G. E. Blelloch, *Prefix Sums and Their Applications*, 1990):
/// `shaders/primitives/compact_count.wgsl`, `compact_scan.wgsl`, `partition.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    n: usize,
    keep: Keep,
    counted: bool,
    variant: String,
}

impl Partition {
    /// Partitions `n` elements by flags: a nonzero flag keeps its element.
    pub fn new(n: usize) -> Self {
        Self { n, keep: Keep::Flagged, counted: false, variant: "auto".to_owned() }
    }

    /// Partitions `n` elements by `predicate`. Such a plan has no flags and is recorded by `record_by`.
    pub fn by(n: usize, predicate: Predicate) -> Self {
        Self { keep: Keep::Where(predicate), ..Self::new(n) }
    }

    counted!(
        counted,
        "elements",
        "Elements and flags behind it are ignored, and as many of `output` may hold anything."
    );

    variants!(variant, TWO_PASSES);
}

impl Partition {
    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let compaction = Compaction {
            op: "partition",
            scatter: "primitives/partition",
            keep: &self.keep,
            variant: &self.variant,
            variants: TWO_PASSES,
            leave_out: 0,
            n: self.n,
            counted: self.counted,
            dtype,
            outputs: &[("output", dtype)],
        };
        let mut c = compaction.lower(profile)?;
        let output = c.operand("output");
        let total = c.total;
        c.program.cost.bytes += (self.n * dtype.size()) as f64;
        c.scatter(output.into_iter().chain([total]));
        Ok(c.program)
    }
}

operands! {
    impl[T: Element,] Partition, T {
        fn record(input: T, flags: u32, output: T, count: u32);
        fn record_by(input: T, output: T, count: u32);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Partition: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "partition",
    about: "the elements whose flag is not 0, then the others, both in order",
    inputs: &[Input::new("input", "(n)"), Input::optional("flags", "u32 (n), unless keep is given")],
    outputs: &[("output", "(n)")],
    types: &DTYPES,
    options: &[KEEP, LENGTH],
    domains: &[("input", Domain::Bits)],
    make: Some(make),
    variants: Partition::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    let (keep, flags) = asked_keep(asked, n)?;
    let (length, output) = asked.length(1, vec![n])?;
    let op = Partition { keep, ..Partition::new(n) }.when(length.is_some(), Partition::counted);
    let op = op.variant(asked.variant());
    let dtype = input.dtype();
    let inputs = [input].into_iter().chain(flags).map(Role::Given).chain(length);
    let operands = inputs.chain([output, Role::Count]).collect();
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let odd = Predicate::custom("fn keep(x: T) -> bool { return x > T(1); }");
    let by = |predicate| Partition::by(10_000, predicate).variant(variant);
    Ok(vec![
        Op::<u32>::lower(&Partition::new(10_000).variant(variant), profile)?,
        Op::<u32>::lower(&Partition::new(10_000).variant(variant).counted(), profile)?,
        Op::<f32>::lower(&by(Predicate::NonZero), profile)?,
        Op::<f16>::lower(&by(Predicate::NonZero), profile)?,
        Op::<f16>::lower(&Partition::new(10_000).variant(variant), profile)?,
        Op::<i32>::lower(&by(odd.clone()), profile)?,
        Op::<f32>::lower(&by(odd), profile)?,
    ])
}
