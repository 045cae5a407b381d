use super::operator::{OP, Operator, Reducer, STATE, Sum, asked_row, by_operator, by_state};
use super::scan::{HIERARCHICAL, LOOKBACK, ScanForm, ScanJob, Segments};
use super::segmented_sort::asked_offsets;
use super::{Affine, DTYPES, Max, Min};
use crate::program::prelude::*;

/// Computes all prefixes of each segment: `output[i] = input[b] + ... + input[i]`, where `b` is the last offset that is
/// at most `i`, for any associative operator in place of `+`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, offsets) = (gpu.upload(&[1u32, 2, 3, 4, 5])?, gpu.upload(&[0u32, 2, 2, 5])?);
/// let output = gpu.alloc::<u32>(5)?;
/// let scan = ScanOffsets::new(Sum, 5, 3).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// scan.record(&mut rec, &x, &offsets, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [1, 3, 3, 7, 12]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` and `output` have `n` elements, `offsets` (u32) has one more than there are segments. Segments may be empty
/// or as long as `n`, and `n` may be 0. Each offset below `n` begins a segment, in any order; others are
/// skipped, and element 0 always begins one. With [`counted`](Self::counted) an operand `length` of one u32 holds the
/// number of elements, at most `n`; where the number of segments is counted, too, set the offsets behind them to `n`.
/// `output` must be another wgpu buffer than the others.
///
/// # Types, precision and determinism
/// As [`SegmentedScan`](crate::SegmentedScan).
///
/// # Cost
/// That of [`SegmentedScan`](crate::SegmentedScan), but a segment's first element is marked by one bit, not by a word:
/// each element is read and written once, and beside it `n / 8` bytes are written and read. Two dispatches mark the
/// segments. Scratch: `n / 8` bytes, and that of the scan.
///
/// # Variants
/// Those of [`SegmentedScan`](crate::SegmentedScan), chosen as there.
///
/// # Errors
/// Those of [`SegmentedScan`](crate::SegmentedScan); [`TooLarge`](ErrorKind::TooLarge) also for offsets or flags
/// above the largest binding.
///
/// # Algorithm
/// `shaders/primitives/scan_offsets_heads.wgsl`, then as [`SegmentedScan`](crate::SegmentedScan).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanOffsets<O = Sum> {
    op: O,
    n: usize,
    segments: usize,
    form: ScanForm,
}

kernel_params! { struct ScanOffsetsHeadsParams { count: u32, n: u32 } }

impl<O> ScanOffsets<O> {
    /// Scans the segments of `n` elements.
    pub fn new(op: O, n: usize, segments: usize) -> Self {
        Self { op, n, segments, form: ScanForm::new() }
    }

    /// Combines only the elements of the segment before `i` into result `i`; the first result is the identity.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.form.exclusive = true;
        self
    }

    counted!(form.counted, "elements", "Behind as many elements, `output` may hold anything.");

    variants!(choose form.variant);

    deterministic!(form.deterministic);
}

pub(super) const VARIANTS: &[Variant] = &[HIERARCHICAL, LOOKBACK];

impl ScanOffsets {
    variants!(list VARIANTS);
}

pub(super) struct OffsetsJob<'a> {
    pub(super) name: &'static str,
    pub(super) op: &'a Operator,
    pub(super) dtype: DType,
    pub(super) n: usize,
    pub(super) segments: usize,
}

impl OffsetsJob<'_> {
    /// The scan of `len` elements, with operands input, heads and output.
    pub(super) fn scan(&self, len: usize, form: &ScanForm, profile: &DeviceProfile) -> Result<Program> {
        let &Self { name, op, dtype, .. } = self;
        ScanJob { name, op, dtype, segments: Segments::Bits, len, form }.lower(profile, VARIANTS)
    }

    pub(super) fn offsets(&self) -> Operand {
        let len = self.segments.saturating_add(1);
        Operand { name: "offsets", dtype: DType::U32, len, access: Access::Read }
    }

    /// Marks the heads; the offsets are operand 1.
    pub(super) fn heads(&self, program: &mut Program, profile: &DeviceProfile) -> Result<Binding> {
        profile.check_bindings(self.name, &program.operands[1..2], "take fewer segments at a time")?;
        index_u32(self.name, "n", self.n)?;
        mark_heads(program, self.n, profile)
    }
}

/// Marks the heads among `n` elements: one bit each, set at the offsets, which are operand 1. Both fit a binding.
pub(super) fn mark_heads(program: &mut Program, n: usize, profile: &DeviceProfile) -> Result<Binding> {
    let words = n.div_ceil(32).max(1);
    let heads = program.scratch(4 * words as u64);
    program.append(fill(words, [0; 2], profile)?, &[heads.resource]);
    let kernel = program.kernel(Kernel::of_file("primitives/scan_offsets_heads", Spec::new()));
    let params = ScanOffsetsHeadsParams { count: program.operands[1].len as u32, n: n as u32 };
    let bindings = vec![Binding::operand(1, &program.operands), heads];
    let grid = Grid::fold(u64::from(params.count).div_ceil(256));
    program.dispatch(kernel, &params, bindings, grid);
    Ok(heads)
}

operands! {
    impl[T: Element, O: Reducer<T, Output = T>,] ScanOffsets<O>, T {
        fn record(input: T, offsets: u32, output: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

impl<T: Element, O: Reducer<T, Output = T>> Op<T> for ScanOffsets<O> {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let (op, &Self { n, segments, ref form, .. }) = (self.op.operator(), self);
        let job = OffsetsJob { name: INFO.name, op: &op, dtype: T::DTYPE, n, segments };
        let scan = job.scan(n, form, profile)?;
        let mut program = Program::new(INFO.name, scan.decision.clone());
        (program.cost, program.determinism) = (scan.cost, scan.determinism);
        // The scan has the heads in the place of the offsets, then the length if it is counted.
        program.operands = scan.operands.clone();
        program.operands[1] = job.offsets();
        if n > 0 {
            let heads = job.heads(&mut program, profile)?;
            let mut operands: Vec<_> = (0..program.operands.len()).map(Resource::Operand).collect();
            operands[1] = heads.resource;
            program.append(scan, &operands);
        }
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "scan-offsets",
    about: "all prefixes combined, anew from each offset on",
    inputs: &[Input::new("input", "(n)"), Input::new("offsets", "u32 (s+1)")],
    outputs: &[("output", "(n, each)")],
    types: &DTYPES,
    options: &[OP, STATE, Setting::flag("exclusive"), Setting::flag("deterministic"), LENGTH],
    make: Some(make),
    variants: ScanOffsets::variants,
    samples,
    domains: &[("input", Domain::Combined)],
    comparison: Some(Comparison::Prefixes),
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (elements, n) = asked_row(asked, "input")?;
    let (offsets, segments) = asked_offsets(asked, n)?;
    let (length, output) = asked.length(1, elements.results(&[n]))?;
    let (input, form) = (elements.input, ScanForm { counted: length.is_some(), ..ScanForm::of(asked) });
    let dtype = input.dtype();
    let operands: Vec<_> = [Role::Given(input), offsets].into_iter().chain(length).chain([output]).collect();
    by_state!(asked, dtype, [f32, i32, u32], (op, T) => {
        Ok(OpCall::new::<T>(ScanOffsets { op, n, segments, form }, operands))
    }, else by_operator!(asked, [Sum, Prod, Min, Max], op => {
        let scan = ScanOffsets { op, n, segments, form };
        by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(scan, operands)))
    }))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    Ok(vec![
        Op::<f32>::lower(&ScanOffsets::new(Sum, 100_000, 99).variant(variant), profile)?,
        Op::<f16>::lower(&ScanOffsets::new(Max, 3, 99).variant(variant).exclusive(), profile)?,
        Op::<f32>::lower(&ScanOffsets::new(Affine::recurrence(), 1000, 9).variant(variant), profile)?,
        Op::<i32>::lower(&ScanOffsets::new(Min, 1000, 9).variant(variant), profile)?,
        Op::<f32>::lower(&ScanOffsets::new(Sum, 100_000, 99).variant(variant).counted(), profile)?,
    ])
}
