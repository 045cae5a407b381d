//! Prefix sums that begin anew where a flag says so.

use super::operator::{OP, Reducer, Sum, by_operator};
use super::scan::{HIERARCHICAL, LOOKBACK, ScanForm, ScanJob, Segments};
use super::{CustomOp, DTYPES, Max, Min};
use crate::element::Element;
use crate::error::Result;
use crate::program::When;
use crate::program::{
    Asked, Comparison, DeviceProfile, Domain, Example, Form, Input, Op, Operation, Program, Role, Setting,
    Variant, by_type, deterministic, operands,
};
use half::f16;

/// `output[i] = input[h] + ... + input[i]`, where `h <= i` is the last head: a segment's first element.
///
/// # Shapes
/// `input`, `heads` (u32) and `output` have `n` elements each. What is not 0 in `heads` begins a segment;
/// element 0 does, whatever its flag. Segments may have any length from 1 to `n`, at the same speed.
/// `output` must be another wgpu buffer than the two inputs. Any length from 0 to the largest buffer: what is
/// above the device's largest binding is taken in pieces.
///
/// # Forms
/// [`exclusive`](SegmentedScan::exclusive) leaves the element itself out: a segment begins with the identity.
///
/// # Types, precision and determinism
/// As [`Scan`](crate::Scan): f32, f16, i32 and u32; any associative operator; rounding may vary from run to
/// run in the variant `lookback`, where a segment spans tiles, unless
/// [`deterministic`](SegmentedScan::deterministic) is asked for.
/// NaN and infinities stay within their segment.
///
/// # Cost
/// About `2 n` operations; `lookback` reads every element and flag once. Scratch: two words for each tile of 2048 to
/// 32768 elements. Two dispatches, three for `hierarchical`, one where a tile holds everything; and as many more
/// as there are pieces.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge) above the largest buffer;
/// [`Unsupported`](crate::ErrorKind::Unsupported) for a type or variant that operator or device do not have;
/// [`Shape`](crate::ErrorKind::Shape), on recording, for flags of another length.
///
/// # Algorithm
/// A scan of pairs (flag, value), G. Blelloch (1990), by the kernels of [`Scan`](crate::Scan);
/// `shaders/primitives/scan_tiles.wgsl` and `segmented_scan_heads.wgsl`. A tile with a head in it posts what
/// it leaves behind at once: look-back ends there.
///
/// # Example
/// ```
/// use tilework::{SegmentedScan, Sum};
/// use tilework::program::{DeviceProfile, Op};
///
/// let positions = SegmentedScan::new(Sum, 1_000_000).exclusive();
/// let program = Op::<u32>::lower(&positions, &DeviceProfile::h100())?;
/// assert_eq!((program.variant(), program.operands[1].name), ("lookback", "heads"));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentedScan<O = Sum> {
    op: O,
    n: usize,
    form: ScanForm,
}

impl<O> SegmentedScan<O> {
    /// Of `n` elements.
    pub fn new(op: O, n: usize) -> Self {
        Self { op, n, form: ScanForm::new() }
    }

    /// Result i combines the elements of its segment before i; the first is the operator's identity.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.form.exclusive = true;
        self
    }

    /// Takes a variant by name; the default is `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.form.variant);
        self
    }

    deterministic!(form.deterministic);

    /// For tests: as [`Scan::leave_out_posts`](crate::Scan::leave_out_posts).
    #[doc(hidden)]
    #[must_use]
    pub fn leave_out_posts(mut self, one_in: u32) -> Self {
        self.form.leave_out = one_in;
        self
    }
}

impl SegmentedScan {
    /// Every way to run a segmented scan.
    pub fn variants() -> &'static [Variant] {
        const VARIANTS: &[Variant] = &[HIERARCHICAL, LOOKBACK];
        VARIANTS
    }
}

operands! {
    impl[T: Element, O: Reducer<T, Output = T>,] SegmentedScan<O>, T {
        fn record(input: T, heads: u32, output: T);
    }
}

impl<T: Element, O: Reducer<T, Output = T>> Op<T> for SegmentedScan<O> {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let op = self.op.operator();
        let job = ScanJob {
            name: "segmented-scan",
            op: &op,
            dtype: T::DTYPE,
            segments: Segments::Heads,
            len: self.n,
            form: &self.form,
        };
        job.lower(profile, SegmentedScan::variants())
    }
}

pub(super) const INFO: Operation = Operation {
    name: "segmented-scan",
    about: "all prefixes combined, anew from each head on",
    inputs: &[Input::new("input", "(n)"), Input::new("heads", "u32 (n)")],
    types: &DTYPES,
    options: &[OP, Setting::flag("exclusive"), Setting::flag("deterministic")],
    make: Some(make),
    variants: SegmentedScan::variants,
    samples,
    domains: &[("heads", Domain::Meaningful)],
    comparison: Some(Comparison::Prefixes),
    facts: super::scan::facts,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let (input, [n]) = asked.array("input")?;
    let heads = asked.indices("heads", &[n], 2)?;
    let (dtype, form) = (input.dtype(), ScanForm::of(asked));
    let operands = vec![Role::Given(input), Role::Given(heads), Role::Result(vec![n])];
    by_operator!(asked, [Sum, Prod, Min, Max], op => {
        let scan = SegmentedScan { op, n, form };
        by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(Form::new::<T>(scan, operands)))
    })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let custom = CustomOp::new(
        "fn op_identity() -> T { return T(0); } fn op_combine(a: T, b: T) -> T { return a + b; }",
    );
    for (n, exclusive) in [(100_000, false), (3, true), (1 << 23, true)] {
        macro_rules! lower {
            ($($op:expr => $($t:ty),*;)*) => {$($({
                let scan = SegmentedScan::new($op, n).variant(variant).when(exclusive, |op| op.exclusive());
                programs.push(Op::<$t>::lower(&scan, profile)?);
            })*)*};
        }
        lower! { Sum => f32, f16; Max => i32; Min => f32; custom.clone() => u32; }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn what_is_not_defined_is_refused() {
        let profile = DeviceProfile::webgpu_defaults();
        let of = |scan: SegmentedScan| Op::<f32>::lower(&scan, &profile).unwrap_err().kind();
        assert_eq!(of(SegmentedScan::new(Sum, 9).variant("kogge-stone")), ErrorKind::InvalidArgument);
        assert_eq!(of(SegmentedScan::new(Sum, 1 << 27)), ErrorKind::TooLarge);
        let lookback = SegmentedScan::new(Sum, 9).variant("lookback").deterministic();
        assert_eq!(of(lookback), ErrorKind::Unsupported);
        assert!(Op::<f32>::lower(&SegmentedScan::new(Sum, 0), &profile).unwrap().dispatches.is_empty());
        assert_eq!(
            crate::DType::U32,
            Op::<f32>::lower(&SegmentedScan::new(Sum, 5), &profile).unwrap().operands[1].dtype
        );
    }
}
