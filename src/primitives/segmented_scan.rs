use super::operator::{OP, Reducer, STATE, Sum, asked_row, by_operator, by_state};
use super::scan::{HIERARCHICAL, LOOKBACK, STATE_SAMPLE, ScanForm, ScanJob, Segments};
use super::{Affine, CustomOp, DTYPES, Max, MeanVariance, Min, StateOp};
use crate::program::prelude::*;

/// Computes all prefixes of each segment: `output[i] = input[h] + ... + input[i]`, where `h <= i` is the first
/// element of the segment of `i`, for any associative operator in place of `+`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, heads) = (gpu.upload(&[1u32, 2, 3, 4, 5])?, gpu.upload(&[1u32, 0, 0, 1, 0])?);
/// let y = gpu.alloc::<u32>(5)?;
/// let scan = SegmentedScan::new(Sum, 5).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// scan.record(&mut rec, &x, &heads, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [1, 3, 6, 4, 9]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input`, `heads` (u32) and `output` have `n` elements each. A nonzero value in `heads` begins a segment; element
/// 0 always does. Segments may have any length from 1 to `n`, at the same speed. `output` must be another wgpu
/// buffer than the two inputs. The length may be anything from 0 to the largest buffer; arrays above the device's
/// largest binding are processed in chunks.
///
/// # Forms
/// [`exclusive`](SegmentedScan::exclusive) leaves out the element itself: a segment begins with the identity.
///
/// # Types, precision and determinism
/// As [`Scan`](crate::Scan): f32, f16, i32 and u32; any associative operator, also over a state of f32, i32 or u32,
/// whose elements and results may have several numbers. In the variant `lookback` the rounding of segments that span
/// tiles may vary from run to run, which [`deterministic`](SegmentedScan::deterministic) rules out. NaN and infinities
/// stay within their segment. A range so far, for one:
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::{Gpu, MinMax};
///
/// let gpu = Gpu::new()?;
/// let (x, heads) = (gpu.upload(&[5i32, 7, -2, 4])?, gpu.upload(&[1u32, 0, 1, 0])?);
/// let ranges = gpu.inclusive_segmented_scan(&x, &heads, MinMax)?;
/// assert_eq!(ranges.read()?, [5, 5, 5, 7, -2, -2, -2, 4]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Cost
/// About `2 n` operations; `lookback` reads every element and flag once. Scratch: two words for each tile of 2048
/// to 32768 elements; a state takes as many times its words. `lookback` takes two dispatches, `hierarchical` three; one
/// dispatch if one tile holds everything; and the same again for each further chunk.
///
/// # Variants
/// `hierarchical` and `lookback`; `auto` (the default) takes `lookback`, and `hierarchical` if bits must
/// repeat or on software drivers.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer.
/// - [`Unsupported`](ErrorKind::Unsupported): a type that the operator does not scan, or a variant that the
///   operator or the device does not have.
/// - [`Shader`](ErrorKind::Shader): your operator's text; the error names the line.
/// - [`Shape`](ErrorKind::Shape), on recording: flags of another length.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// A scan of pairs (flag, value), G. Blelloch (1990), by the kernels of [`Scan`](crate::Scan);
/// `shaders/primitives/scan_tiles.wgsl` and `segmented_scan_heads.wgsl`. A tile that contains a head posts its
/// final value at once, and look-back ends there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentedScan<O = Sum> {
    op: O,
    n: usize,
    form: ScanForm,
}

impl<O> SegmentedScan<O> {
    /// Scans `n` elements.
    pub fn new(op: O, n: usize) -> Self {
        Self { op, n, form: ScanForm::new() }
    }

    /// Combines only the elements of the segment before `i` into result `i`; the first result is the identity.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.form.exclusive = true;
        self
    }

    variants!(choose form.variant);

    deterministic!(form.deterministic);

    counted!(form.counted, "elements", "Behind as many elements, `output` may hold anything.");

    super::lookback::leave_out_posts!(form.leave_out);
}

const VARIANTS: &[Variant] = &[HIERARCHICAL, LOOKBACK];

impl SegmentedScan {
    variants!(list VARIANTS);
}

operands! {
    impl[T: Element, O: Reducer<T, Output = T>,] SegmentedScan<O>, T {
        fn record(input: T, heads: u32, output: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

impl<T: Element, O: Reducer<T, Output = T>> Op<T> for SegmentedScan<O> {
    proven!();

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
    outputs: &[("output", "(n, each)")],
    types: &DTYPES,
    options: &[OP, STATE, Setting::flag("exclusive"), Setting::flag("deterministic"), LENGTH],
    make: Some(make),
    variants: SegmentedScan::variants,
    samples,
    domains: &[("input", Domain::Combined), ("heads", Domain::Meaningful)],
    comparison: Some(Comparison::Prefixes),
    facts: super::scan::facts,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (elements, n) = asked_row(asked, "input")?;
    let heads = asked.indices("heads", &[n], 2)?;
    let (length, output) = asked.length(1, elements.results(&[n]))?;
    let (input, form) = (elements.input, ScanForm { counted: length.is_some(), ..ScanForm::of(asked) });
    let dtype = input.dtype();
    let operands: Vec<_> = [input, heads].map(Role::Given).into_iter().chain(length).chain([output]).collect();
    by_state!(asked, dtype, [f32, i32, u32], (op, T) => {
        Ok(OpCall::new::<T>(SegmentedScan { op, n, form }, operands))
    }, else by_operator!(asked, [Sum, Prod, Min, Max], op => {
        let scan = SegmentedScan { op, n, form };
        by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(scan, operands)))
    }))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let custom =
        CustomOp::new("fn op_identity() -> T { return T(0); } fn op_combine(a: T, b: T) -> T { return a + b; }");
    for (n, exclusive) in [(100_000, false), (3, true), (1 << 23, true)] {
        macro_rules! lower {
            ($($op:expr => $($t:ty),*;)*) => {$($({
                let scan = SegmentedScan::new($op, n).variant(variant).when(exclusive, |op| op.exclusive());
                programs.push(Op::<$t>::lower(&scan, profile)?);
            })*)*};
        }
        lower! { Sum => f32, f16; Max => i32; Min => f32; custom.clone() => u32; }
        let counted = SegmentedScan::new(Sum, n).variant(variant).counted();
        programs.push(Op::<f32>::lower(&counted, profile)?);
        if n <= 100_000 {
            lower! { Affine::recurrence() => f32; MeanVariance::sample() => f32; StateOp::new(STATE_SAMPLE) => u32; }
        }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
