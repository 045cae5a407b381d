use super::DTYPES;
use super::compact::{Compaction, Keep, Predicate, VARIANTS};
use crate::program::prelude::*;

/// Copies the elements with a nonzero flag, or those a predicate keeps, to the front of the output, in order.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[3.0f32, -1.0, 4.0, -1.5])?;
/// let (kept, count) = (gpu.alloc::<f32>(4)?, gpu.alloc::<u32>(1)?);
/// let positive = Predicate::custom("fn keep(x: T) -> bool { return x > 0.0; }");
/// let plan = Select::by(4, positive).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record_by(&mut rec, &x, &kept, &count)?;
/// rec.submit()?;
/// let n = count.read()?[0] as usize;
/// assert_eq!(kept.slice(..n)?.read()?, [3.0, 4.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input`, `flags` (`u32`) and `output` have `n` elements each, and `count` has one `u32`. [`by`](Self::by) has no
/// `flags`. Elements of `output` behind the kept ones are not written. The count stays on the device: read it, or
/// bind it as the length of the next op. `output` and `count` must not share a buffer with the others. `n` may be
/// 0. With [`counted`](Self::counted) an operand `length` of one u32 holds the number of elements, at most `n`.
///
/// # Precision and determinism
/// Elements move as bits; a predicate sees f16 as f32. Every variant gives the same result in every run, and keeps
/// the order. NaN, infinities, zeros of both signs and subnormal numbers move unchanged.
///
/// # Cost
/// `lookback` reads inputs once, in two dispatches and 8 bytes of scratch for each tile of 8192 or more elements.
/// The others read the flags, or the elements a predicate tests, twice, in four dispatches and 4 bytes for each
/// 4096 elements. Outputs are written once.
///
/// # Variants
/// `hierarchical`, `subgroup` and `lookback`; `auto` (the default) takes `lookback`, except where a waiting
/// workgroup may starve the others: in browsers and, above 2^20 elements, on software drivers.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): an element type other than `f32`, `f16`, `i32` and `u32`, or a
///   variant that the device cannot run.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the device's largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
/// - [`Shader`](ErrorKind::Shader): a predicate that does not compile.
///
/// # Algorithm
/// Single pass with decoupled look-back, D. Merrill and M. Garland (2016), made independent of forward progress by
/// decoupled fallback, T. Smith, R. Levien and J. Owens (2025): `shaders/primitives/compact_scatter.wgsl` and
/// `scan_lookback.wgsl`. The other variants count, scan and scatter (G. E. Blelloch, *Prefix Sums and Their
/// Applications*, 1990): `compact_count.wgsl`, `compact_scan.wgsl`, `compact_scatter.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Select {
    n: usize,
    keep: Keep,
    positions: bool,
    counted: bool,
    variant: String,
    leave_out: u32,
}

impl Select {
    /// Selects from `n` elements by flags: a nonzero flag keeps its element.
    pub fn new(n: usize) -> Self {
        let variant = "auto".to_owned();
        Self { n, keep: Keep::Flagged, positions: false, counted: false, variant, leave_out: 0 }
    }

    /// Selects from `n` elements by `predicate`. Such a plan has no flags and is recorded by `record_by`.
    pub fn by(n: usize, predicate: Predicate) -> Self {
        Self { keep: Keep::Where(predicate), ..Self::new(n) }
    }

    /// Selects the positions, u32 from 0 on, of those of `n` elements that `predicate` keeps. Such a plan is recorded
    /// by `record_positions`. Flags are elements that [`Predicate::NonZero`] keeps. [`Gather`](crate::Gather) then
    /// selects any number of other arrays by the positions.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let flags = gpu.upload(&[0u32, 1, 0, 7])?;
    /// let (positions, count) = (gpu.alloc::<u32>(4)?, gpu.alloc::<u32>(1)?);
    /// let plan = Select::positions(4, Predicate::NonZero).plan::<u32>(&gpu)?;
    /// let mut rec = gpu.recorder();
    /// plan.record_positions(&mut rec, &flags, &positions, &count)?;
    /// rec.submit()?;
    /// assert_eq!(count.read()?, [2]);
    /// assert_eq!(positions.slice(..2)?.read()?, [1, 3]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn positions(n: usize, predicate: Predicate) -> Self {
        Self { positions: true, ..Self::by(n, predicate) }
    }

    counted!(counted, "elements", "Elements and flags behind it are ignored.");

    #[cfg(feature = "stream")]
    pub(crate) const NAME: &'static str = INFO.name;

    variants!(variant);

    super::lookback::leave_out_posts!(leave_out);
}

impl Select {
    pub(super) fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let compaction = Compaction {
            op: "select",
            scatter: "primitives/select",
            keep: &self.keep,
            variant: &self.variant,
            variants: VARIANTS,
            leave_out: self.leave_out,
            n: self.n,
            counted: self.counted,
            dtype,
            outputs: &[("output", if self.positions { DType::U32 } else { dtype })],
        };
        let mut c = compaction.lower(profile)?;
        c.spec = c.spec.flag("POSITIONS", self.positions);
        let output = c.operand("output");
        c.scatter(output);
        Ok(c.program)
    }
}

operands! {
    impl[T: Element,] Select, T {
        fn record(input: T, flags: u32, output: T, count: u32);
        fn record_by(input: T, output: T, count: u32);
        fn record_positions(input: T, output: u32, count: u32);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Select: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "select",
    about: "the elements whose flag is not 0, in order",
    inputs: &[Input::new("input", "(n)"), Input::optional("flags", "u32 (n), unless keep is given")],
    outputs: &[("output", "(count)")],
    types: &DTYPES,
    options: &[Setting::flag("positions"), KEEP, LENGTH],
    domains: &[("input", Domain::Bits)],
    make: Some(make),
    variants: Select::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

/// The option that takes the text of a [`Predicate`].
pub(super) const KEEP: Setting = Setting::wgsl("keep");

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    let (keep, flags) = asked_keep(asked, n)?;
    let length = asked.length(1, vec![n])?.0;
    let positions = asked.settings().has("positions");
    let op = Select { keep, positions, ..Select::new(n) }.when(length.is_some(), Select::counted);
    let op = op.variant(asked.variant());
    if let (true, Some(flags)) = (positions, &flags) {
        let op = Select { keep: Keep::Where(Predicate::NonZero), ..op };
        let operands = [Role::Given(flags.clone())].into_iter().chain(length);
        return Ok(OpCall::new::<u32>(op, operands.chain([Role::Counted, Role::Count]).collect()));
    }
    let dtype = input.dtype();
    let inputs = [input].into_iter().chain(flags).map(Role::Given).chain(length);
    let operands = inputs.chain([Role::Counted, Role::Count]).collect();
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

/// The rule of a request: a predicate, or the flags of `n` elements.
pub(super) fn asked_keep(asked: &mut Asked<'_>, n: usize) -> Result<(Keep, Option<HostArray>)> {
    match asked.settings().word(KEEP.name) {
        Some(wgsl) => Ok((Keep::Where(Predicate::custom(wgsl)), None)),
        None => Ok((Keep::Flagged, Some(asked.indices("flags", &[n], 2)?))),
    }
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let odd = Predicate::custom("fn keep(x: T) -> bool { return x > T(1); }");
    let by = |predicate| Select::by(10_000, predicate).variant(variant);
    let blocked = Select::new(100_000).variant(variant).leave_out_posts(2);
    Ok(vec![
        Op::<u32>::lower(&blocked, profile)?,
        Op::<f16>::lower(&Select::positions(10_000, Predicate::NonZero).variant(variant), profile)?,
        Op::<u32>::lower(&Select::new(10_000).variant(variant), profile)?,
        Op::<f32>::lower(&by(Predicate::NonZero), profile)?,
        Op::<f16>::lower(&by(Predicate::NonZero), profile)?,
        Op::<f16>::lower(&Select::new(10_000).variant(variant), profile)?,
        Op::<u32>::lower(&Select::new(10_000).variant(variant).counted(), profile)?,
        Op::<f16>::lower(&Select::new(10_000).variant(variant).counted(), profile)?,
        Op::<i32>::lower(&by(odd.clone()).counted(), profile)?,
        Op::<i32>::lower(&by(odd.clone()), profile)?,
        Op::<f32>::lower(&by(odd), profile)?,
    ])
}
