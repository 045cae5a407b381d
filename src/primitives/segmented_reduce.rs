use super::operator::{Reducer, Sum, asked_row, by_operator, by_state, counted_results};
use super::runs::{Labels, OPTIONS, RunsJob, VARIANTS, tile};
use super::scan::{STATE_SAMPLE, ScanForm};
use super::{Affine, CustomOp, Max, MeanVariance, Min, StateOp, WORDS};
use crate::program::prelude::*;

/// Reduces each segment to one value: `results[s] = values[h] + ... + values[e]`, where `h..=e` is segment `s`, for
/// any associative operator in place of `+`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let values = gpu.upload(&[1u32, 2, 3, 4, 5])?;
/// let heads = gpu.upload(&[0u32, 0, 1, 0, 9])?;
/// let (largest, count) = (gpu.alloc::<u32>(5)?, gpu.alloc::<u32>(1)?);
/// let plan = SegmentedReduce::new(Max, 5).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &values, &heads, &largest, &count)?;
/// rec.submit()?;
/// let segments = count.read()?[0] as usize;
/// assert_eq!(largest.slice(..segments)?.read()?, [2, 4, 5]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `values`, `heads` (u32) and `results` have `n` elements; `count` has one `u32`, the number of segments, which
/// stays on the device. A nonzero value in `heads` begins a segment; element 0 always does. Only the first `count`
/// elements of `results` are written. Segments may have any length from 1 to `n`, at the same speed. `n` may be 0.
/// Each output must be another wgpu buffer than every other operand. With
/// [`counted`](SegmentedReduce::counted) an operand `length` of one u32 holds the number of elements, at most `n`.
///
/// # Types, precision and determinism
/// As [`ReduceByKey`](crate::ReduceByKey): values of f32, i32 and u32; any associative operator, in order, also over a
/// state, whose values and results may have several numbers. The same device gives the same bits in every run, except
/// for operators that round in the variant `lookback`, which [`deterministic`](SegmentedReduce::deterministic) rules
/// out. NaN and infinities stay within their segment. Mean and variance of each segment, for one:
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::{Gpu, MeanVariance};
///
/// let gpu = Gpu::new()?;
/// let (x, heads) = (gpu.upload(&[1.0f32, 3.0, 5.0, 5.0])?, gpu.upload(&[1u32, 0, 1, 0])?);
/// let (statistics, count) = gpu.segmented_reduce(&x, &heads, MeanVariance::population())?;
/// assert_eq!(count.read()?, [2]);
/// assert_eq!(statistics.slice(..2 * 2)?.read()?, [2.0, 1.0, 5.0, 0.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Cost
/// About `2 n` operations. `lookback` reads every value and flag once, in two dispatches. `hierarchical` takes
/// three: it reads flags twice, and the values of the last segment of each tile once more. One dispatch if one tile
/// holds everything. A length from the device takes one more dispatch. Scratch: two words for each tile of 512 to 8192
/// elements, four for `lookback`; more for a state.
///
/// # Variants
/// `hierarchical` and `lookback`; `auto` (the default) takes `hierarchical` if a sum rounds, and for 2^18 values or
/// more if a state has several words or on a processor, else `lookback`.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the device's largest binding.
/// - [`Unsupported`](ErrorKind::Unsupported): a type that the operator does not reduce.
/// - [`Shader`](ErrorKind::Shader): your operator's text; the error names the line.
/// - [`Shape`](ErrorKind::Shape), on recording: flags of another length.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// As [`ReduceByKey`](crate::ReduceByKey), with flags in place of keys: `shaders/primitives/runs_tiles.wgsl` and
/// `segmented_reduce.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentedReduce<O = Sum> {
    op: O,
    n: usize,
    form: ScanForm,
    tile: Option<(u32, u32)>,
}

impl<O> SegmentedReduce<O> {
    /// Reduces the segments of `n` values.
    pub fn new(op: O, n: usize) -> Self {
        Self { op, n, form: ScanForm::new(), tile: None }
    }

    variants!(choose form.variant);

    deterministic!(form.deterministic);

    counted!(form.counted, "elements", "Elements behind it are ignored.");

    /// Sets the threads of a workgroup and the vec4 of a thread, for tuning. The default is that of the device's
    /// policy.
    #[doc(hidden)]
    #[must_use]
    pub fn tile(mut self, workgroup_size: u32, vec4s: u32) -> Self {
        self.tile = Some((workgroup_size, vec4s));
        self
    }

    super::lookback::leave_out_posts!(form.leave_out);
}

impl SegmentedReduce {
    variants!(list VARIANTS);
}

operands! {
    impl[T: Element, O: Reducer<T, Output = T>,] SegmentedReduce<O>, T {
        fn record(values: T, heads: u32, results: T, count: u32);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

impl<T: Element, O: Reducer<T, Output = T>> Op<T> for SegmentedReduce<O> {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let op = self.op.operator();
        let job = RunsJob {
            name: "segmented-reduce",
            op: &op,
            dtype: T::DTYPE,
            labels: Labels::Heads,
            n: self.n,
            form: &self.form,
            tile: self.tile,
        };
        job.lower(profile)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "segmented-reduce",
    about: "the values of each segment combined, from one head to the next",
    inputs: &[Input::new("values", "(n)"), Input::new("heads", "u32 (n)")],
    outputs: &[("results", "(count, each)")],
    types: &WORDS,
    options: OPTIONS,
    domains: &[("values", Domain::Combined)],
    make: Some(make),
    variants: SegmentedReduce::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (elements, n) = asked_row(asked, "values")?;
    let heads = asked.indices("heads", &[n], 2)?;
    let (results, values) = (counted_results(&elements.each), elements.input);
    let (dtype, mut form, tile) = (values.dtype(), ScanForm::of(asked), tile(asked)?);
    let length = asked.length(1, vec![n])?.0;
    form.counted = length.is_some();
    let inputs = [values, heads].map(Role::Given).into_iter().chain(length);
    let operands: Vec<_> = inputs.chain([results, Role::Count]).collect();
    by_state!(asked, dtype, [f32, i32, u32], (op, T) => {
        Ok(OpCall::new::<T>(SegmentedReduce { op, n, form, tile }, operands))
    }, else by_operator!(asked, [Sum, Prod, Min, Max], op => {
        let reduce = SegmentedReduce { op, n, form, tile };
        by_type!(asked, dtype, [f32, i32, u32], T => Ok(OpCall::new::<T>(reduce, operands)))
    }))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let custom =
        CustomOp::new("fn op_identity() -> T { return T(0); } fn op_combine(a: T, b: T) -> T { return a + b; }");
    let mut programs = Vec::new();
    for n in [100_000, 3, 1 << 23] {
        programs.push(Op::<f32>::lower(&SegmentedReduce::new(Sum, n).variant(variant), profile)?);
        let counted = SegmentedReduce::new(Sum, n).variant(variant).counted();
        programs.push(Op::<f32>::lower(&counted, profile)?);
        programs.push(Op::<f32>::lower(&SegmentedReduce::new(Min, n).variant(variant), profile)?);
        programs.push(Op::<i32>::lower(&SegmentedReduce::new(Max, n).variant(variant), profile)?);
        programs.push(Op::<u32>::lower(&SegmentedReduce::new(custom.clone(), n).variant(variant), profile)?);
        if n <= 100_000 {
            programs.push(Op::<f32>::lower(&SegmentedReduce::new(Affine::maps(), n).variant(variant), profile)?);
            let means = SegmentedReduce::new(MeanVariance::sample(), n).variant(variant);
            programs.push(Op::<f32>::lower(&means, profile)?);
            let own = SegmentedReduce::new(StateOp::new(STATE_SAMPLE), n).variant(variant);
            programs.push(Op::<u32>::lower(&own, profile)?);
        }
    }
    Ok(programs)
}
