//! One result for each segment between flags.

use super::operator::{Reducer, Sum, by_operator};
use super::runs::{Labels, OPTIONS, RunsJob, VARIANTS, tile};
use super::scan::ScanForm;
use super::{CustomOp, Max, Min, WORDS};
use crate::element::Element;
use crate::error::Result;
use crate::program::{
    Asked, DeviceProfile, Example, Form, Input, Op, Operation, Program, Role, Variant, by_type,
    deterministic, operands,
};

/// `results[s] = values[h] + ... + values[e]`, where `h..=e` is segment `s`: from one head to the next, for any
/// associative operator.
///
/// # Shapes
/// `values`, `heads` (u32) and `results` have `n` elements, `count` has one `u32`: the number of segments, which
/// stays on the device. What is not 0 in `heads` begins a segment; element 0 does, whatever its flag. `results` is
/// written up to `count`, and left as it is behind it. Segments may have any length from 1 to `n`, at the same speed.
/// `n` may be 0. Each output must be another wgpu buffer than every other operand.
///
/// # Types, precision and determinism
/// As [`ReduceByKey`](crate::ReduceByKey): values of f32, i32 and u32; any associative operator, in order; same
/// device, same bits, except for what rounds in the variant `lookback`, which
/// [`deterministic`](SegmentedReduce::deterministic) rules out.
/// NaN and infinities stay within their segment.
///
/// # Cost
/// About `2 n` operations. `lookback` reads every value and flag once, in two dispatches; `hierarchical` reads flags
/// twice, and once more those values that belong to the last segment of each tile, in three dispatches. One
/// dispatch where a tile holds everything. Scratch: two words for each tile of 512 to 8192 elements, four for
/// `lookback`.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the device's largest binding.
/// [`Unsupported`](crate::ErrorKind::Unsupported) for a type that the operator does not have.
/// [`Shape`](crate::ErrorKind::Shape), on recording, for flags of another length.
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// That of [`ReduceByKey`](crate::ReduceByKey), with flags in place of keys: `shaders/primitives/runs_tiles.wgsl`
/// and `segmented_reduce.wgsl`.
///
/// # Example
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentedReduce<O = Sum> {
    op: O,
    n: usize,
    form: ScanForm,
    tile: Option<(u32, u32)>,
}

impl<O> SegmentedReduce<O> {
    /// Of `n` values.
    pub fn new(op: O, n: usize) -> Self {
        Self { op, n, form: ScanForm::new(), tile: None }
    }

    /// Takes a variant by name; the default is `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.form.variant);
        self
    }

    deterministic!(form.deterministic);

    /// Invocations of a workgroup and vec4 of an invocation, instead of what the device's policy has: for tuning.
    #[doc(hidden)]
    #[must_use]
    pub fn tile(mut self, workgroup_size: u32, quads: u32) -> Self {
        self.tile = Some((workgroup_size, quads));
        self
    }

    /// For tests: as [`Scan::leave_out_posts`](crate::Scan::leave_out_posts).
    #[doc(hidden)]
    #[must_use]
    pub fn leave_out_posts(mut self, one_in: u32) -> Self {
        self.form.leave_out = one_in;
        self
    }
}

impl SegmentedReduce {
    /// Every way to run the op.
    pub fn variants() -> &'static [Variant] {
        VARIANTS
    }
}

operands! {
    impl[T: Element, O: Reducer<T, Output = T>,] SegmentedReduce<O>, T {
        fn record(values: T, heads: u32, results: T, count: u32);
    }
}

impl<T: Element, O: Reducer<T, Output = T>> Op<T> for SegmentedReduce<O> {
    crate::program::proven!();

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
    types: &WORDS,
    options: OPTIONS,
    make: Some(make),
    variants: SegmentedReduce::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let (values, [n]) = asked.array("values")?;
    let heads = asked.indices("heads", &[n], 2)?;
    let (dtype, form, tile) = (values.dtype(), ScanForm::of(asked), tile(asked)?);
    let operands = vec![Role::Given(values), Role::Given(heads), Role::Counted, Role::Count];
    by_operator!(asked, [Sum, Prod, Min, Max], op => {
        let reduce = SegmentedReduce { op, n, form, tile };
        by_type!(asked, dtype, [f32, i32, u32], T => Ok(Form::new::<T>(reduce, operands)))
    })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let custom = CustomOp::new(
        "fn op_identity() -> T { return T(0); } fn op_combine(a: T, b: T) -> T { return a + b; }",
    );
    let mut programs = Vec::new();
    for n in [100_000, 3, 1 << 23] {
        programs.push(Op::<f32>::lower(&SegmentedReduce::new(Sum, n).variant(variant), profile)?);
        programs.push(Op::<f32>::lower(&SegmentedReduce::new(Min, n).variant(variant), profile)?);
        programs.push(Op::<i32>::lower(&SegmentedReduce::new(Max, n).variant(variant), profile)?);
        programs.push(Op::<u32>::lower(&SegmentedReduce::new(custom.clone(), n).variant(variant), profile)?);
    }
    Ok(programs)
}
