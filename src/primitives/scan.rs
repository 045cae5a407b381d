mod lowering;
mod policy;

pub(super) use lowering::{ScanJob, ScanTilesParams, Segments};
pub(super) use policy::ScanPolicy;

use super::operator::{OP, Reducer, STATE, Sum, asked_elements, by_operator, by_state};
use super::{Affine, CustomOp, DTYPES, LogSumExp, Max, MeanVariance, Min, MinMax, Prod, StateOp, Sum64};
use crate::analysis::{brent_kung_operations, brent_kung_steps, kogge_stone_operations, reduction_operations};
use crate::program::facts::{Fact, Subject, fact};
use crate::program::prelude::*;

/// Computes all prefixes of each row: `output[r, i] = input[r, 0] + ... + input[r, i]`, for any associative
/// operator in place of `+`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[3u32, 1, 4, 1])?, gpu.alloc::<u32>(4)?);
/// let offsets = Scan::new(Sum, 4).exclusive().plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// offsets.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [0, 3, 4, 8]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` and `output` have `rows * n` elements, row-major, and each row is scanned by itself. [`Scan::new`] takes
/// one row. The length may be anything from 0 to the largest buffer; arrays above the device's largest binding are
/// processed in chunks. The two must be different wgpu buffers.
///
/// # Forms
/// [`exclusive`](Scan::exclusive) leaves out the element itself: a row begins with the identity (0, 1, and for
/// `Min` and `Max` the greatest and least value of the type, infinities for floats). [`reverse`](Scan::reverse)
/// scans from the end of each row. The two combine.
///
/// # Types
/// f32, f16, i32 and u32, with [`Sum`], [`Prod`], [`Min`], [`Max`] and [`CustomOp`], which need not commute. Operators
/// over a state: [`MinMax`] and [`StateOp`] take f32, i32 and u32, [`MeanVariance`], [`LogSumExp`] and [`Affine`] f32.
/// Their elements and results may have several numbers each, one after another; `n` counts elements. A linear
/// recurrence, for one:
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// // y = 0.5 y + x, from pairs of factor and summand.
/// let (maps, y) = (gpu.upload(&[0.5f32, 8.0, 0.5, 0.0, 0.5, 1.0])?, gpu.alloc::<f32>(3)?);
/// let smoothed = Scan::new(Affine::recurrence(), 3).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// smoothed.record(&mut rec, &maps, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [8.0, 4.0, 3.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Precision and determinism
/// Floats are combined in f32; f16 results are rounded once, at the end. The error of a sum is at most `depth *
/// 2^-24 * sum |x|` over the elements it covers, with a depth of about `64 + 3 log2(n) + n / 256`. Integers wrap.
/// `Min` and `Max` are NaN from the first NaN on. The same device gives the same bits in every run, except for
/// operators that round (floating sums and products, and custom operators on floats) in the variant `lookback`,
/// whose order of combination depends on timing. [`deterministic`](Scan::deterministic) rules that out: `auto` then
/// takes `hierarchical`.
///
/// # Cost
/// About `2 n` operations; `lookback` reads every element once, all others twice. Scratch: two words for each tile
/// of 2048 to 32768 elements (the ladder variants: of 256 words), and for a state as many times its words. `lookback`
/// takes two dispatches, the others three; one dispatch if one tile holds everything; and the same again for each
/// further chunk.
///
/// # Variants
/// See [`Scan::variants`]. `auto` (the default) takes `lookback`, and `hierarchical` if bits must
/// repeat or on software drivers.
///
/// ```
/// use tilework::program::{DeviceProfile, Op};
/// use tilework::{Scan, Sum};
///
/// let same_bits = Scan::new(Sum, 1_000_000).deterministic();
/// let h100 = DeviceProfile::h100();
/// assert_eq!(Op::<u32>::lower(&same_bits, &h100)?.variant(), "lookback");
/// assert_eq!(Op::<f32>::lower(&same_bits, &h100)?.variant(), "hierarchical");
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer.
/// - [`Unsupported`](ErrorKind::Unsupported): a type that the operator does not scan, or a variant that the
///   operator or the device does not have.
/// - [`Shader`](ErrorKind::Shader): your operator's text; the error names the line.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// Single-pass scan with decoupled look-back, Merrill and Garland (2016), made independent of forward progress by
/// decoupled fallback, Smith, Levien and Owens (2025); `shaders/primitives/scan_tiles.wgsl` and
/// `scan_lookback.wgsl`. Rows are segments: the same kernels scan them at the same speed whatever their length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan<O = Sum> {
    op: O,
    rows: usize,
    n: usize,
    form: ScanForm,
}

/// The options that scans and segmented scans share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScanForm {
    pub(super) exclusive: bool,
    pub(super) reverse: bool,
    /// Reads the number of elements from an operand `length`.
    pub(super) counted: bool,
    pub(super) variant: String,
    pub(super) deterministic: bool,
    /// For tests: one tile in `leave_out` posts nothing; 0 turns this off.
    pub(super) leave_out: u32,
}

impl ScanForm {
    pub(super) fn new() -> Self {
        Self {
            exclusive: false,
            reverse: false,
            counted: false,
            variant: "auto".into(),
            deterministic: false,
            leave_out: 0,
        }
    }

    /// Reads the options; an option that the op lacks is off.
    pub(super) fn of(asked: &Asked<'_>) -> Self {
        let [exclusive, reverse, deterministic] =
            ["exclusive", "reverse", "deterministic"].map(|flag| asked.settings().has(flag));
        let form = Self { exclusive, reverse, deterministic, ..Self::new() };
        Self { variant: asked.variant().into(), ..form }
    }
}

impl<O> Scan<O> {
    /// Scans an array of `n` elements.
    pub fn new(op: O, n: usize) -> Self {
        Self::rows(op, 1, n)
    }

    /// Scans each of `rows` rows of `n` elements.
    pub fn rows(op: O, rows: usize, n: usize) -> Self {
        Self { op, rows, n, form: ScanForm::new() }
    }

    /// Combines only the elements before `i` into result `i`; the first result is the identity. The default
    /// includes element `i`.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.form.exclusive = true;
        self
    }

    /// Scans each row from its end to its start.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.form.reverse = true;
        self
    }

    variants!(choose form.variant);

    deterministic!(form.deterministic);

    counted!(form.counted, "elements of one row", "Behind as many elements, `output` may hold anything.");

    super::lookback::leave_out_posts!(form.leave_out);
}

#[cfg(feature = "cuda")]
impl<O> Scan<O> {
    /// Rows, and elements of each.
    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.rows, self.n)
    }

    pub(crate) fn direction(&self) -> (bool, bool) {
        (self.form.exclusive, self.form.reverse)
    }

    /// Whether the number of elements comes from the device.
    pub(crate) fn is_counted(&self) -> bool {
        self.form.counted
    }

    /// The variant selected by name.
    pub(crate) fn asked(&self) -> &str {
        &self.form.variant
    }

    pub(crate) fn operator<T: Element>(&self) -> super::Operator
    where
        O: Reducer<T>,
    {
        self.op.operator()
    }
}

/// The ladder of the textbook, `hierarchical`, and `lookback`, the fast one.
const VARIANTS: &[Variant] = &[
    Variant::portable("kogge-stone", "a workgroup scans one word a thread in log2 n steps of n joins; three kernels"),
    Variant::portable("kogge-stone-double", "the same between two buffers: one barrier a step instead of two"),
    Variant::portable("brent-kung", "up a tree and down again: fewer joins, more steps"),
    Variant::subgroups("subgroup", "subgroups scan by shuffles, then their totals: one barrier"),
    Variant::portable("coarsened", "each thread scans eight words staged in workgroup memory, then Kogge-Stone"),
    HIERARCHICAL,
    LOOKBACK,
];

impl Scan {
    variants!(list VARIANTS);
}

pub(super) const HIERARCHICAL: Variant = Variant::portable(
    "hierarchical",
    "three kernels: totals of tiles, scan of the totals, scan of tiles held in registers as vec4",
);
pub(super) const LOOKBACK: Variant = Variant::portable(
    "lookback",
    "one pass: each tile looks back at the totals that earlier tiles posted, and totals a silent tile itself",
)
.in_any_order();

operands! {
    impl[T: Element, O: Reducer<T, Output = T>,] Scan<O>, T [cuda] {
        fn record(input: T, output: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

impl<T: Element, O: Reducer<T, Output = T>> Op<T> for Scan<O> {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let op = self.op.operator();
        let job = ScanJob {
            name: "scan",
            op: &op,
            dtype: T::DTYPE,
            segments: if self.rows == 1 { Segments::One } else { Segments::Rows(self.n) },
            len: elements("scan", "input", &[self.rows, self.n])?,
            form: &self.form,
        };
        job.lower(profile, Scan::variants())
    }
}

pub(super) const INFO: Operation = Operation {
    name: "scan",
    about: "all prefixes of an array combined, or those of each row",
    inputs: &[Input::new("input", "(n) or (rows, n)")],
    outputs: &[("output", "(elements, each)")],
    types: &DTYPES,
    options: &[OP, STATE, Setting::flag("exclusive"), Setting::flag("reverse"), Setting::flag("deterministic"), LENGTH],
    domains: &[("input", Domain::Combined)],
    make: Some(make),
    variants: Scan::variants,
    samples,
    comparison: Some(Comparison::Prefixes),
    facts,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let elements = asked_elements(asked, "input")?;
    asked.set("elements", &elements.shape);
    let results = elements.results(&elements.shape);
    let input = elements.input;
    let (rows, n) = match elements.shape[..] {
        [n] => (1, n),
        [rows, n] => (rows, n),
        _ => {
            return Err(err!(
                Shape,
                "scan: input is {input}; it must have 1 dimension, or 2 to scan each row; reshape it"
            ));
        }
    };
    let (length, output) = asked.length(elements.shape.len(), results)?;
    let (dtype, form) = (input.dtype(), ScanForm { counted: length.is_some(), ..ScanForm::of(asked) });
    let operands: Vec<_> = [Role::Given(input)].into_iter().chain(length).chain([output]).collect();
    by_state!(asked, dtype, [f32, i32, u32], (op, T) => {
        Ok(OpCall::new::<T>(Scan { op, rows, n, form }, operands))
    }, else by_operator!(asked, [Sum, Prod, Min, Max], op => {
        let scan = Scan { op, rows, n, form };
        by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(scan, operands)))
    }))
}

/// A user's state: 3 numbers an element and a result.
pub(super) const STATE_SAMPLE: &str = "struct State { x: u32, y: u32, z: u32 }
     fn state_identity() -> State { return State(0u, 0u, 0u); }
     fn state_of(x: T, y: T, z: T) -> State { return State(x, y, z); }
     fn state_combine(a: State, b: State) -> State { return State(a.x + b.x, a.y + b.y, a.z + b.z); }";

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let custom =
        CustomOp::new("fn op_identity() -> T { return T(0); } fn op_combine(a: T, b: T) -> T { return a + b; }");
    macro_rules! lower {
        ($rows:expr, $n:expr, $exclusive:expr, $reverse:expr; $($op:expr => $($t:ty),*;)*) => {$($({
            let scan = Scan::rows($op, $rows, $n).variant(variant).when($exclusive, |op| op.exclusive()).when($reverse, |op| op.reverse());
            programs.push(Op::<$t>::lower(&scan, profile)?);
        })*)*};
    }
    // Every type and operator, then every form: several tiles, one tile, rows, large tiles.
    lower! { 1, 100_000, false, false;
        Sum => f32, f16, u32, i32;
        Prod => f32, u32;
        Min => f32, i32;
        Max => f16, u32;
        custom.clone() => f32, u32;
    }
    for (rows, n) in [(1, 100_000), (1, 3), (50, 777), (1, 1 << 23)] {
        lower! { rows, n, true, true; Sum => f16; Max => f32; }
    }
    lower! { 50, 777, false, true; Sum => f32; }
    let state = StateOp::new(STATE_SAMPLE);
    for (rows, n) in [(1, 100_000), (1, 3), (50, 777)] {
        lower! { rows, n, false, false; Affine::maps() => f32; Affine::recurrence() => f32; state.clone() => u32; }
        lower! { rows, n, true, true; MinMax => f32, i32; Sum64 => i32; MeanVariance::population() => f32; LogSumExp => f32; }
    }
    lower! { 1, 1 << 21, true, false; Affine::maps() => f32; }
    lower! { 50, 777, true, false; Prod => i32; }
    let counted = Scan::new(Sum, 100_000).variant(variant).counted();
    programs.push(Op::<f16>::lower(&counted, profile)?);
    programs.push(Op::<f32>::lower(&counted.reverse(), profile)?);
    if variant == "lookback" {
        let blocked = Scan::new(Sum, 100_000).variant(variant).leave_out_posts(2);
        programs.push(Op::<f32>::lower(&blocked, profile)?);
    }
    Ok(programs)
}

/// Counts the joins and steps of a tree for one tile, beside those of a sequential scan.
pub(crate) fn facts(subject: &Subject<'_>) -> Option<Vec<Fact>> {
    let (_, interface) = subject.kernel("scan_ladder")?;
    let n = u64::from(interface.workgroup_size[0]);
    let (joins, steps): (u64, u64) = match subject.program.variant() {
        "kogge-stone" | "kogge-stone-double" => (kogge_stone_operations(n), n.checked_ilog2()?.into()),
        "brent-kung" => (brent_kung_operations(n), brent_kung_steps(n)),
        _ => return None,
    };
    let of = format!("for a tile of {n} words; a sequential scan takes {}", reduction_operations(n));
    Some(vec![fact("joins", joins as f64, of), fact("steps", steps as f64, "of the tree, one after another")])
}

#[cfg(test)]
mod tests;
