mod lowering;

use super::operator::{Operator, Reducer, STATE, Sum, asked_elements, by_operator, by_state};
use super::scan::STATE_SAMPLE;
use super::{Affine, ArgMax, ArgMin, CustomOp, LogSumExp, Max, MeanVariance, Min, MinMax, Prod, StateOp, Sum64};
use crate::analysis::divergence;
use crate::program::facts::{Fact, Subject, fact};
use crate::program::prelude::*;
use lowering::ReduceLowering;
pub(super) use lowering::workgroups;

/// Reduces each row to one value: `output[r] = input[r, 0] + input[r, 1] + ... + input[r, n - 1]`, for any
/// associative operator in place of `+`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[3.0f32, 1.0, 4.0, 1.0, 5.0, 9.0])?;
/// let (sum, largest) = (gpu.alloc::<f32>(1)?, gpu.alloc::<u32>(2)?);
/// let all = Reduce::new(Sum, 6).plan::<f32>(&gpu)?;
/// let by_rows = Reduce::rows(ArgMax, 2, 3).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// all.record(&mut rec, &x, &sum)?;
/// by_rows.record(&mut rec, &x, &largest)?;
/// rec.submit()?;
/// assert_eq!(sum.read()?, [23.0]);
/// assert_eq!(largest.read()?, [2, 2]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` has `rows * n` elements, row-major; `output` has `rows`. Operators over a state may have several numbers an
/// element or result, one after another: [`MinMax`], [`MeanVariance`], [`LogSumExp`], [`Affine`] and your own,
/// [`StateOp`]. [`Reduce::new`] takes one row. The length may
/// be anything from 0 to the largest buffer; an input above the device's largest binding is processed in chunks.
/// The two must be different wgpu buffers.
///
/// # Types
/// f32, f16, i32, u32, u8 and i8. Sums and products of bytes have 32 bits; [`ArgMin`] and [`ArgMax`] return u32;
/// [`CustomOp`] takes f32, f16, i32 and u32. [`MinMax`] takes all six, [`StateOp`] f32, i32 and u32, other operators
/// over a state f32.
///
/// # Precision and determinism
/// Floats are combined in f32, in a tree: the error of a sum is at most about `(log2(n) + n / (workgroups * 256)) *
/// 2^-24 * sum |x|`. The same device gives the same bits in every run, except for floating sums and products in the
/// variant `atomic`, which [`deterministic`](Reduce::deterministic) rules out. Integers wrap. `Min` and `Max`
/// return NaN if there is one; `ArgMin` and `ArgMax` return the first position, and a NaN comes before all numbers.
///
/// # Cost
/// `rows * (n - 1)` operations; every element is read once. Two dispatches (one if a row needs one workgroup; the
/// ladder variants take one for every factor of 256 or 512), and scratch of at most 16 KiB a row (the ladder
/// variants: a 64th of the input).
///
/// # Variants
/// See [`Reduce::variants`]. `auto` (the default) takes `coarsened`, or `sequential` for rows that fit one
/// workgroup.
///
/// # Errors
/// - [`Shape`](ErrorKind::Shape): a minimum, maximum or position of 0 elements.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer.
/// - [`Unsupported`](ErrorKind::Unsupported): a type that the operator does not take, or a variant that the
///   operator or the device does not have.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// Two-pass tree reduction, M. Harris (2007), as in CUB's `DeviceReduce`;
/// `shaders/primitives/reduce_coarsened.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reduce<O = Sum> {
    op: O,
    rows: usize,
    n: usize,
    counted: bool,
    variant: String,
    deterministic: bool,
}

impl<O> Reduce<O> {
    /// Reduces an array of `n` elements to one value.
    pub fn new(op: O, n: usize) -> Self {
        Self::rows(op, 1, n)
    }

    /// Reduces each of `rows` rows of `n` elements to one value.
    pub fn rows(op: O, rows: usize, n: usize) -> Self {
        Self { op, rows, n, counted: false, variant: "auto".into(), deterministic: false }
    }

    variants!(choose variant);

    deterministic!(deterministic);

    counted!(
        counted,
        "elements of one row",
        "If it is 0, a minimum, maximum or position is that of no element: any number. `atomic` does not take it."
    );
}

/// The ladder of the textbook, and `coarsened`, the fast one.
const VARIANTS: &[Variant] = &[
    Variant::portable("interleaved", "tree with strides 1, 2, 4, ...: divergent, keeps the order of operands"),
    Variant::portable("sequential", "tree with strides n/2, n/4, ...: active threads stay together"),
    Variant::portable("shared", "each thread adds two elements on loading, then the tree"),
    Variant::subgroups("subgroup", "the tree's last steps are shuffles in a subgroup"),
    Variant::subgroups("two-stage-subgroup", "subgroups reduce by shuffles, then their totals: one barrier"),
    Variant::portable("coarsened", "a bounded number of workgroups walks the input by vec4; two passes"),
    Variant::portable("atomic", "workgroups combine their totals by an atomic; for comparison").in_any_order(),
];

impl Reduce {
    #[cfg(feature = "stream")]
    pub(crate) const NAME: &'static str = INFO.name;

    variants!(list VARIANTS);
}

operands! {
    impl[T: Element, O: Reducer<T>,] Reduce<O>, T {
        fn record(input: T, output: O::Output);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowers! {
    impl[T: Element, O: Reducer<T>] Reduce<O> as [T], |op, dtype, profile|
        ReduceLowering::new(op, &op.op.operator(), dtype, profile)?.run()
}

/// Reduces a vector by an operator that another op has.
pub(super) fn reduced(
    operator: &Operator, (n, counted): (usize, bool), dtype: DType, profile: &DeviceProfile,
) -> Result<Program> {
    let desc = Reduce { counted, ..Reduce::new((), n).variant("coarsened") };
    ReduceLowering::new(&desc, operator, dtype, profile)?.run()
}

pub(super) const INFO: Operation = Operation {
    name: "reduce",
    about: "one value from all elements, or from each row",
    inputs: &[Input::new("input", "(..., n)")],
    outputs: &[("output", "(each); (rows, each) with axis last")],
    types: &[DType::F32, DType::F16, DType::I32, DType::U32, DType::U8, DType::I8],
    options: &[
        Setting::word("op", || Operator::BUILT_IN.map(|op| op.name()).to_vec()),
        STATE,
        Setting::word("axis", || vec!["all", "last"]),
        Setting::flag("deterministic"),
        LENGTH,
    ],
    domains: &[("input", Domain::Combined)],
    make: Some(make),
    variants: Reduce::variants,
    samples,
    comparison: Some(Comparison::Sums),
    facts,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let elements = asked_elements(asked, "input")?;
    let (rows, n) = match elements.shape.split_last() {
        _ if asked.settings().choice("axis")? == "all" => {
            (&[][..], crate::shape::elements(asked.name(), "input", &elements.shape)?)
        }
        Some((n, rows)) => (rows, *n),
        None => {
            let (name, input) = (asked.name(), &elements.input);
            return Err(err!(Shape, "{name}: input is {input}; it has no last axis of elements"));
        }
    };
    asked.set("rows", rows);
    let (output, one_row) = (Role::Result(elements.results(rows)), rows.is_empty());
    let rows = crate::shape::elements(asked.name(), "input", rows)?;
    let length = asked.length(if one_row { 1 } else { 2 }, vec![n])?.0;
    let (dtype, counted) = (elements.input.dtype(), length.is_some());
    let operands: Vec<_> = [Role::Given(elements.input)].into_iter().chain(length).chain([output]).collect();
    let deterministic = asked.settings().has("deterministic");
    by_state!(asked, dtype, [f32, f16, i32, u32, u8, i8], (op, T) => {
        let mut reduce = Reduce::rows(op, rows, n).variant(asked.variant());
        (reduce.deterministic, reduce.counted) = (deterministic, counted);
        Ok(OpCall::new::<T>(reduce, operands))
    }, else by_operator!(asked, [Sum, Prod, Min, Max, ArgMin, ArgMax], op => {
        let mut reduce = Reduce::rows(op, rows, n).variant(asked.variant());
        (reduce.deterministic, reduce.counted) = (deterministic, counted);
        by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(reduce, operands)))
    }))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let custom =
        CustomOp::new("fn op_identity() -> T { return T(0); } fn op_combine(a: T, b: T) -> T { return a + b; }");
    let state = StateOp::new(STATE_SAMPLE);
    // One row in two passes; short rows; long rows; too short for a vec4.
    for (rows, n) in [(1, 1 << 20), (5000, 40), (3, 70_000), (1, 1)] {
        macro_rules! lower {
            ($($op:expr => $($t:ty),*;)*) => {$($(
                match Op::<$t>::lower(&Reduce::rows($op, rows, n).variant(variant), profile) {
                    Ok(program) => programs.push(program),
                    Err(e) if e.kind() == crate::ErrorKind::Unsupported => {}
                    Err(e) => return Err(e),
                }
            )*)*};
        }
        lower! {
            Sum => f32, f16, i32, u32, u8, i8;
            Prod => f32, u32;
            Min => f32, i32, u32, u8, i8;
            Max => f32, f16, i32, u32, u8;
            ArgMin => f32, u32;
            ArgMax => f32, f16, i32;
            custom.clone() => f32, i32;
            custom.clone().commutative() => f32;
            MinMax => f32, u8, i32;
            Sum64 => i32, u32;
            MeanVariance::population() => f32;
            MeanVariance::sample() => f32;
            LogSumExp => f32;
            Affine::maps() => f32;
            Affine::recurrence() => f32;
            state.clone() => u32;
            state.clone().commutative() => u32;
        }
    }
    for op in [Reduce::new(Sum, 1 << 20), Reduce::new(Sum, 1)] {
        match Op::<f32>::lower(&op.counted().variant(variant), profile) {
            Err(e) if e.kind() == crate::ErrorKind::Unsupported => {}
            program => programs.push(program?),
        }
    }
    Ok(programs)
}

/// Counts joins and, for the trees, the subgroups that run both sides of the branch, over all steps.
fn facts(subject: &Subject<'_>) -> Option<Vec<Fact>> {
    if subject.program.dispatches.is_empty() {
        return None;
    }
    let mut facts = vec![fact("joins", subject.program.cost.flop, "at the least")];
    let Some((_, interface)) = subject.kernel("reduce_tree") else { return Some(facts) };
    let threads = interface.workgroup_size[0];
    let steps = threads.checked_ilog2()?;
    let divergent = |works: &dyn Fn(u32, u32) -> bool| {
        let of_step = |i| divergence([1; 3], [threads, 1, 1], subject.subgroup, |[t, ..]| u32::from(works(t, i)));
        (0..steps).map(|i| of_step(i).divergent).sum::<u64>() as f64
    };
    let of = format!("of {} subgroups, over {steps} steps of a tree", threads.div_ceil(subject.subgroup) * steps);
    match subject.program.variant() {
        "interleaved" => facts.push(fact("divergent", divergent(&|t, i| t % (2 << i) == 0), of)),
        "sequential" | "shared" => {
            facts.push(fact("divergent", divergent(&|t, i| t < threads >> (i + 1)), of));
        }
        _ => {}
    }
    Some(facts)
}

#[cfg(test)]
mod tests;
