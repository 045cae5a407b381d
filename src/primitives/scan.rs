//! Prefix sums of an array, or of each row of a matrix, for any associative operator.

mod lowering;
mod policy;

use crate::program::When;
pub(super) use lowering::{ScanJob, ScanTilesParams, Segments, monoid};
pub(super) use policy::ScanPolicy;

use super::operator::{OP, Reducer, Sum, by_operator};
use super::{CustomOp, DTYPES, Max, Min, Prod};
use crate::analysis::{
    brent_kung_operations, brent_kung_steps, kogge_stone_operations, reduction_operations,
};
use crate::element::Element;
use crate::error::{Result, err};
use crate::program::facts::{Fact, Subject, fact};
use crate::program::{
    Asked, Comparison, DeviceProfile, Form, Input, Op, Operation, Program, Role, Setting, Variant, by_type,
    deterministic, operands,
};
use crate::shape::elements;
use half::f16;

/// `output[r, i] = input[r, 0] + ... + input[r, i]`, for any associative operator.
///
/// # Shapes
/// `input` and `output` have `rows * n` elements, row-major, and each row is scanned by itself.
/// [`Scan::new`] is one row. Any length from 0 to the largest buffer: what is above the device's largest
/// binding is taken in pieces. The two must be different wgpu buffers.
///
/// # Forms
/// [`exclusive`](Scan::exclusive) leaves the element itself out: a row begins with the identity (0, 1, and
/// for `Min` and `Max` the greatest and least value of the type, infinities for floats).
/// [`reverse`](Scan::reverse) runs from the end of each row. The two combine.
///
/// # Types
/// f32, f16, i32 and u32, with [`Sum`], [`Prod`], [`Min`], [`Max`] and [`CustomOp`], which need not commute.
///
/// # Precision and determinism
/// Floats are combined in f32 and rounded to f16, if that is the type, at the end. The error of a sum is at
/// most `depth * 2^-24 * sum |x|` over what it covers, with a depth of about `64 + 3 log2(n) + n / 256`.
/// Integers wrap. `Min` and `Max` are NaN from the first NaN on. Same device, same bits, except for what
/// rounds (floating sums, products and operators of one's own) in the variant `lookback`, whose order of
/// combination depends on timing: [`deterministic`](Scan::deterministic) rules that out, and `auto` then
/// takes `hierarchical`.
///
/// # Cost
/// About `2 n` operations; `lookback` reads every element once, all others twice. Scratch: two words for
/// each tile of 2048 to 32768 elements (the ladder variants: of 256 words). Two dispatches, three for all but `lookback`,
/// one where a tile holds everything; and as many more as there are pieces.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge) above the largest buffer;
/// [`Unsupported`](crate::ErrorKind::Unsupported) for a type or variant that operator or device do not have.
///
/// # Algorithm
/// Single-pass scan with decoupled look-back, Merrill and Garland (2016), made independent of forward
/// progress by decoupled fallback, Smith, Levien and Owens (2025); `shaders/primitives/scan_tiles.wgsl` and
/// `scan_lookback.wgsl`. Rows are segments: the same kernels scan them at the same speed whatever their length.
///
/// # Example
/// ```
/// use tilework::{Scan, Sum};
/// use tilework::program::{DeviceProfile, Op};
///
/// let offsets = Scan::new(Sum, 1_000_000).exclusive();
/// let by_rows = Scan::rows(Sum, 1000, 1000).variant("kogge-stone");
/// let same_bits = Scan::new(Sum, 1_000_000).deterministic();
/// assert_eq!(Op::<u32>::lower(&offsets, &DeviceProfile::h100())?.variant(), "lookback");
/// assert_eq!(Op::<u32>::lower(&by_rows, &DeviceProfile::h100())?.dispatches.len(), 3);
/// assert_eq!(Op::<u32>::lower(&same_bits, &DeviceProfile::h100())?.variant(), "lookback");
/// assert_eq!(Op::<f32>::lower(&same_bits, &DeviceProfile::h100())?.variant(), "hierarchical");
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan<O = Sum> {
    op: O,
    rows: usize,
    n: usize,
    form: ScanForm,
}

/// What scans and segmented scans have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScanForm {
    pub(super) exclusive: bool,
    pub(super) reverse: bool,
    pub(super) variant: String,
    pub(super) deterministic: bool,
    /// One in so many tiles posts nothing; 0 for none.
    pub(super) leave_out: u32,
}

impl ScanForm {
    pub(super) fn new() -> Self {
        Self { exclusive: false, reverse: false, variant: "auto".into(), deterministic: false, leave_out: 0 }
    }

    /// What the options say; those that an op does not have are not given.
    pub(super) fn of(asked: &Asked<'_>) -> Self {
        let [exclusive, reverse, deterministic] =
            ["exclusive", "reverse", "deterministic"].map(|flag| asked.settings().has(flag));
        Self { exclusive, reverse, variant: asked.variant().into(), deterministic, leave_out: 0 }
    }
}

impl<O> Scan<O> {
    /// All of an array of `n` elements.
    pub fn new(op: O, n: usize) -> Self {
        Self::rows(op, 1, n)
    }

    /// Each of `rows` rows of `n` elements.
    pub fn rows(op: O, rows: usize, n: usize) -> Self {
        Self { op, rows, n, form: ScanForm::new() }
    }

    /// Result i combines the elements before i; the first is the operator's identity. By default element i is included.
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

    /// Takes a variant by name; the default is `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.form.variant);
        self
    }

    deterministic!(form.deterministic);

    /// For tests: in the variant `lookback`, one tile in `one_in` posts nothing, as if its workgroup had been
    /// stopped. The results must be the same.
    #[doc(hidden)]
    #[must_use]
    pub fn leave_out_posts(mut self, one_in: u32) -> Self {
        self.form.leave_out = one_in;
        self
    }
}

#[cfg(feature = "cuda")]
impl<O> Scan<O> {
    /// Rows and elements of each.
    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.rows, self.n)
    }

    /// Whether it is exclusive, and whether it runs from the end.
    pub(crate) fn direction(&self) -> (bool, bool) {
        (self.form.exclusive, self.form.reverse)
    }

    /// The variant asked for.
    pub(crate) fn asked(&self) -> &str {
        &self.form.variant
    }

    /// The operator, as a value.
    pub(crate) fn operator<T: Element>(&self) -> super::Operator
    where
        O: Reducer<T>,
    {
        self.op.operator()
    }
}

impl Scan {
    /// Every way to run a scan: the ladder, and `lookback`, which is the fast one.
    pub fn variants() -> &'static [Variant] {
        const VARIANTS: &[Variant] = &[
            Variant::portable(
                "kogge-stone",
                "a workgroup scans a word a lane in log2 n steps of n joins; three kernels",
            ),
            Variant::portable(
                "kogge-stone-double",
                "the same between two buffers: one barrier a step instead of two",
            ),
            Variant::portable("brent-kung", "up a tree and down again: fewer joins, more steps"),
            Variant::subgroups("subgroup", "subgroups scan by shuffles, then their totals: one barrier"),
            Variant::portable(
                "coarsened",
                "each invocation walks eight words staged in workgroup memory, then Kogge-Stone",
            ),
            HIERARCHICAL,
            LOOKBACK,
        ];
        VARIANTS
    }
}

pub(super) const HIERARCHICAL: Variant = Variant::portable(
    "hierarchical",
    "three kernels: totals of tiles, scan of the totals, scan of tiles held in registers as vec4",
);
pub(super) const LOOKBACK: Variant = Variant::portable(
    "lookback",
    "one pass: each tile looks back at what those before it posted, and totals a silent one itself",
)
.in_any_order();

operands! {
    impl[T: Element, O: Reducer<T, Output = T>,] Scan<O>, T [cuda] {
        fn record(input: T, output: T);
    }
}

impl<T: Element, O: Reducer<T, Output = T>> Op<T> for Scan<O> {
    crate::program::proven!();

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
    types: &DTYPES,
    options: &[OP, Setting::flag("exclusive"), Setting::flag("reverse"), Setting::flag("deterministic")],
    make: Some(make),
    variants: Scan::variants,
    samples,
    comparison: Some(Comparison::Prefixes),
    facts,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let input = asked.any("input")?;
    let (rows, n) = match *input.shape() {
        [n] => (1, n),
        [rows, n] => (rows, n),
        _ => {
            return Err(err!(
                Shape,
                "scan: input is {input}; it must be an array or a matrix, whose rows are scanned"
            ));
        }
    };
    let (dtype, output) = (input.dtype(), Role::Result(input.shape().to_vec()));
    let (form, operands) = (ScanForm::of(asked), vec![Role::Given(input), output]);
    by_operator!(asked, [Sum, Prod, Min, Max], op => {
        let scan = Scan { op, rows, n, form };
        by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(Form::new::<T>(scan, operands)))
    })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let custom = CustomOp::new(
        "fn op_identity() -> T { return T(0); } fn op_combine(a: T, b: T) -> T { return a + b; }",
    );
    macro_rules! lower {
        ($rows:expr, $n:expr, $exclusive:expr, $reverse:expr; $($op:expr => $($t:ty),*;)*) => {$($({
            let scan = Scan::rows($op, $rows, $n).variant(variant).when($exclusive, |op| op.exclusive()).when($reverse, |op| op.reverse());
            programs.push(Op::<$t>::lower(&scan, profile)?);
        })*)*};
    }
    // Every type and operator; every form, in several tiles, in one, by rows, in large tiles.
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
    lower! { 50, 777, true, false; Prod => i32; }
    if variant == "lookback" {
        let blocked = Scan::new(Sum, 100_000).variant(variant).leave_out_posts(2);
        programs.push(Op::<f32>::lower(&blocked, profile)?);
    }
    Ok(programs)
}

/// Of the trees: joins for a tile, against those of one after the other.
pub(crate) fn facts(subject: &Subject<'_>) -> Option<Vec<Fact>> {
    let (_, interface) = subject.kernel("scan_ladder")?;
    let n = u64::from(interface.workgroup_size[0]);
    let (joins, steps): (u64, u64) = match subject.program.variant() {
        "kogge-stone" | "kogge-stone-double" => (kogge_stone_operations(n), n.checked_ilog2()?.into()),
        "brent-kung" => (brent_kung_operations(n), brent_kung_steps(n)),
        _ => return None,
    };
    let of = format!("for a tile of {n} words; one after the other it is {}", reduction_operations(n));
    Some(vec![
        fact("joins", joins as f64, of),
        fact("steps", steps as f64, "of the tree, one after the other"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::primitives::ArgMin;
    use crate::program::Determinism;

    #[test]
    fn pieces_cover_every_element_in_the_order_of_the_scan() {
        let profile = DeviceProfile::webgpu_defaults();
        for reverse in [false, true] {
            let scan = Scan::new(Sum, 60_000_001).when(reverse, |op| op.reverse());
            let program = Op::<f32>::lower(&scan, &profile).unwrap();
            assert_eq!(program.dispatches.len(), 3);
            let outputs = program.dispatches[1..].iter().map(|d| &d.bindings[2..4]);
            let mut ranges: Vec<_> = outputs.flatten().map(|b| (b.offset, b.offset + b.size)).collect();
            assert_eq!(ranges[0].0 == 0, !reverse);
            ranges.sort_unstable();
            assert_eq!((ranges[0].0, ranges[3].1), (0, 240_000_004));
            assert!(ranges.windows(2).all(|w| w[0].1 == w[1].0), "{ranges:?}");
        }
    }

    #[test]
    fn what_is_not_defined_is_refused() {
        let profile = DeviceProfile::webgpu_defaults();
        let kind = |r: Result<Program>| r.unwrap_err().kind();
        assert_eq!(kind(Op::<u32>::lower(&Scan::new(ArgMin, 9), &profile)), ErrorKind::Unsupported);
        assert_eq!(kind(Op::<u8>::lower(&Scan::new(Min, 9), &profile)), ErrorKind::Unsupported);
        let of = |scan: Scan| Op::<f32>::lower(&scan, &profile);
        assert_eq!(kind(of(Scan::new(Sum, 9).variant("subgroup"))), ErrorKind::Unsupported);
        assert_eq!(kind(of(Scan::new(Sum, 9).variant("magic"))), ErrorKind::InvalidArgument);
        assert_eq!(kind(of(Scan::new(Sum, 1 << 27))), ErrorKind::TooLarge);
        assert_eq!(kind(of(Scan::rows(Sum, usize::MAX, 2))), ErrorKind::TooLarge);
        let lookback = Scan::new(Sum, 9).variant("lookback").deterministic();
        assert_eq!(kind(of(lookback.clone())), ErrorKind::Unsupported);
        assert_eq!(Op::<i32>::lower(&lookback, &profile).unwrap().determinism, Determinism::SameBits);
    }

    #[test]
    fn nothing_is_nothing_to_do() {
        let profile = DeviceProfile::webgpu_defaults();
        for (rows, n) in [(1, 0), (0, 5), (5, 0)] {
            assert!(Op::<f32>::lower(&Scan::rows(Sum, rows, n), &profile).unwrap().dispatches.is_empty());
        }
    }
}
