//! One result for each segment between offsets.

use super::operator::{OP, Reducer, Sum, asked_row, by_operator, by_state};
use super::scan::ScanForm;
use super::scan_offsets::{OffsetsJob, VARIANTS};
use super::segmented_sort::asked_offsets;
use super::{Max, MeanVariance, Min, WORDS};
use crate::element::Element;
use crate::error::{Result, err};
use crate::program::{
    Asked, Binding, Comparison, DeviceProfile, Domain, Example, Grid, Input, Kernel, Op, OpCall, Operation,
    Program, Resource, Role, Setting, by_type, deterministic, kernel_params, operands,
};
use crate::shader::Spec;
use crate::shape::{elements, index_u32};

/// Reduces each segment to one value: `results[s] = input[b] + ... + input[e - 1]`, where `b` and `e` are
/// `offsets[s]` and `offsets[s + 1]`, for any associative operator in place of `+`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, offsets) = (gpu.upload(&[1u32, 2, 3, 4, 5])?, gpu.upload(&[0u32, 2, 2, 5])?);
/// let results = gpu.alloc::<u32>(3)?;
/// let sums = ReduceOffsets::new(Sum, 5, 3).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// sums.record(&mut rec, &x, &offsets, &results)?;
/// rec.submit()?;
/// assert_eq!(results.read()?, [3, 0, 12]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` has `n` elements, `results` one for each segment, `offsets` (u32) one more, in ascending order. Segments may
/// be empty: they give the identity of the operator (0, 1, and for a minimum the largest number). `n` may be 0.
/// `results` must be another wgpu buffer than the others.
///
/// Offsets above `n` count as `n`. If they decrease, a segment whose end is not above its begin is empty, and others
/// begin at the last offset before their end: nothing is read or written outside.
///
/// # Types, precision and determinism
/// As [`SegmentedReduce`](crate::SegmentedReduce).
///
/// # Cost
/// That of [`ScanOffsets`](crate::ScanOffsets), and one read and write of each result: the same for segments of any
/// lengths. Scratch: 8 bytes an element, more for a state.
///
/// # Variants
/// Those of [`ScanOffsets`](crate::ScanOffsets), chosen as there.
///
/// # Errors
/// Those of [`ScanOffsets`](crate::ScanOffsets); [`TooLarge`](crate::ErrorKind::TooLarge) also for prefixes above the
/// largest binding.
///
/// # Algorithm
/// As [`ScanOffsets`](crate::ScanOffsets); `shaders/primitives/reduce_offsets.wgsl` takes the last prefix of each
/// segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReduceOffsets<O = Sum> {
    op: O,
    n: usize,
    segments: usize,
    form: ScanForm,
}

kernel_params! { struct ReduceOffsetsParams { segments: u32, each: u32, n: u32 } }

impl<O> ReduceOffsets<O> {
    /// Reduces the segments of `n` elements.
    pub fn new(op: O, n: usize, segments: usize) -> Self {
        Self { op, n, segments, form: ScanForm::new() }
    }

    crate::program::variants!(choose form.variant);

    deterministic!(form.deterministic);
}

impl ReduceOffsets {
    crate::program::variants!(list VARIANTS);
}

operands! {
    impl[T: Element, O: Reducer<T, Output = T>,] ReduceOffsets<O>, T {
        fn record(input: T, offsets: u32, results: T);
    }
}

impl<T: Element, O: Reducer<T, Output = T>> Op<T> for ReduceOffsets<O> {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let name = INFO.name;
        if !WORDS.contains(&T::DTYPE) {
            return Err(err!(
                Unsupported,
                "{name}: elements of {}; convert them to f32, i32 or u32",
                T::DTYPE
            ));
        }
        let (op, &Self { n, segments, ref form, .. }) = (self.op.operator(), self);
        let job = OffsetsJob { name, op: &op, dtype: T::DTYPE, n, segments };
        let scan = job.scan(n, form, profile)?;
        // An exclusive scan begins with the identity.
        let first = ScanForm { exclusive: true, deterministic: true, ..ScanForm::new() };
        let first = job.scan(1, &first, profile)?;
        let each = first.operands[2].len;
        let mut program = Program::new(name, scan.decision.clone());
        (program.cost, program.determinism) = (scan.cost, scan.determinism);
        let mut results = scan.operands[2].clone();
        (results.name, results.len) = ("results", elements(name, "results", &[segments, each])?);
        program.operands = vec![scan.operands[0].clone(), job.offsets(), results];
        profile.check_bindings(name, &program.operands[2..], "take fewer segments at a time")?;
        if segments == 0 {
            return Ok(program);
        }
        let heads = job.heads(&mut program, profile)?;
        let [of_prefixes, of_identity] = [n.max(1) * each, each].map(|words| 4 * words as u64);
        let what = format_args!("prefixes of {n} elements");
        profile.check_scratch(name, what, of_prefixes, "take fewer elements at a time")?;
        let (prefixes, identity) = (program.scratch(of_prefixes), program.scratch(of_identity));
        let nothing = program.scratch(4 * first.operands[0].len as u64);
        program.append(first, &[nothing.resource, heads.resource, identity.resource]);
        program.append(scan, &[Resource::Operand(0), heads.resource, prefixes.resource]);
        let kernel = program.kernel(Kernel::of_file("primitives/reduce_offsets", Spec::new()));
        let [offsets, results] = [1, 2].map(|i| Binding::operand(i, &program.operands));
        let bindings = vec![offsets, prefixes, identity, results];
        let segments = index_u32(name, "segments", segments)?;
        let params = ReduceOffsetsParams { segments, each: each as u32, n: n as u32 };
        let words = u64::from(segments) * each as u64;
        program.dispatch(kernel, &params, bindings, Grid::fold(words.div_ceil(256)));
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "reduce-offsets",
    about: "the elements of each segment combined, from one offset to the next",
    inputs: &[Input::new("input", "(n)"), Input::new("offsets", "u32 (s+1)")],
    outputs: &[("results", "(s, each)")],
    types: &WORDS,
    options: &[OP, Setting::flag("deterministic")],
    make: Some(make),
    variants: ReduceOffsets::variants,
    samples,
    domains: &[("input", Domain::Combined)],
    comparison: Some(Comparison::Prefixes),
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (elements, n) = asked_row(asked, "input")?;
    let (offsets, segments) = asked_offsets(asked, n)?;
    asked.set("s", &[segments]);
    let (results, input) = (Role::Result(elements.results(&[segments])), elements.input);
    let (dtype, form) = (input.dtype(), ScanForm::of(asked));
    let operands = vec![Role::Given(input), offsets, results];
    by_state!(asked, dtype, [f32, i32, u32], (op, T) => {
        Ok(OpCall::new::<T>(ReduceOffsets { op, n, segments, form }, operands))
    }, else by_operator!(asked, [Sum, Prod, Min, Max], op => {
        let reduce = ReduceOffsets { op, n, segments, form };
        by_type!(asked, dtype, [f32, i32, u32], T => Ok(OpCall::new::<T>(reduce, operands)))
    }))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    Ok(vec![
        Op::<f32>::lower(&ReduceOffsets::new(Sum, 100_000, 99).variant(variant), profile)?,
        Op::<i32>::lower(&ReduceOffsets::new(Max, 3, 99).variant(variant), profile)?,
        Op::<u32>::lower(&ReduceOffsets::new(Min, 1000, 9).variant(variant), profile)?,
        Op::<f32>::lower(&ReduceOffsets::new(MeanVariance::sample(), 1000, 9).variant(variant), profile)?,
    ])
}
