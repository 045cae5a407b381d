use super::operator::{Operator, Reducer, STATE, Sum, asked_row, by_operator, by_state};
use super::segmented_sort::asked_offsets;
use super::state::Monoid;
use super::{Affine, ArgMax, ArgMin, Max, MeanVariance, Min, Sum64, WORDS};
use crate::program::prelude::*;

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
/// `input` has `n` elements, `results` one for each segment, `offsets` (u32) one more. Segments may have any length,
/// and `n` may be 0. An empty segment gives the identity of the operator: 0, 1, for a minimum the largest number, for a
/// position `u32::MAX`. `results` must be another wgpu buffer than the others.
///
/// Offsets above `n` count as `n`. A segment whose end is not above its begin is empty, so offsets may decrease, and
/// segments may overlap. With [`counted`](Self::counted) an operand `length` of one u32 holds the number of segments,
/// at most that of the plan.
///
/// # Types, precision and determinism
/// Elements of f32, i32 and u32; any associative operator, in order, also over a state, whose elements and results may
/// have several numbers. Integers are exact modulo 2^32; sums and products of floats are rounded at each step of a
/// tree. The same device gives the same bits in every run. NaN and infinities stay within their segment.
/// [`ArgMin`] and [`ArgMax`] give positions in `input`, of u32:
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::{ArgMax, Gpu};
///
/// let gpu = Gpu::new()?;
/// let (x, offsets) = (gpu.upload(&[1.0f32, 7.0, 3.0, 5.0, 5.0])?, gpu.upload(&[0u32, 3, 3, 5])?);
/// assert_eq!(gpu.reduce_offsets(&x, &offsets, ArgMax)?.read()?, [1, u32::MAX, 3]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Cost
/// Every element and offset is read once and every result written once, in one dispatch if no segment can be long. A
/// segment gets 1 to 256 threads, a quarter of the average length. Segments that would take more than 64 rounds of
/// these threads are listed, and reduced by a workgroup each: those that overlap are read as often as they do. Their
/// whole tiles of 4,096 elements are reduced once, whatever they share. Two dispatches and one that clears the list.
/// Scratch: 4 bytes a segment, and 4 bytes a tile, more for a state.
///
/// # Variants
/// One, `direct`.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the device's largest binding.
/// - [`Unsupported`](ErrorKind::Unsupported): a type that the operator does not reduce.
/// - [`Shader`](ErrorKind::Shader): your operator's text; the error names the line.
/// - [`Shape`](ErrorKind::Shape), on recording: operands of another length.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/primitives/reduce_offsets.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReduceOffsets<O = Sum> {
    op: O,
    n: usize,
    segments: usize,
    counted: bool,
    variant: String,
}

kernel_params! {
    struct ReduceOffsetsParams { n: u32, segments: u32, limit: u32, tiles: u32, walkers: u32 }
}

const TILE: usize = 4096;
/// Rounds of the threads of a segment that is not long.
const ROUNDS: usize = 64;
/// Maximum of workgroups that share the long segments.
const MAX_WALKERS: usize = 1056;

const VARIANTS: &[Variant] =
    &[Variant::portable("direct", "threads for each segment by the average length, workgroups for long ones")];

impl<O> ReduceOffsets<O> {
    /// Reduces the segments of `n` elements.
    pub fn new(op: O, n: usize, segments: usize) -> Self {
        Self { op, n, segments, counted: false, variant: "auto".into() }
    }

    counted!(
        counted,
        "segments",
        "Here `n` is the number of segments; results behind as many are not written, and offsets behind them not read."
    );

    variants!(choose variant);
}

impl ReduceOffsets {
    variants!(list VARIANTS);
}

operands! {
    impl[T: Element, O: Reducer<T>,] ReduceOffsets<O>, T {
        fn record(input: T, offsets: u32, results: O::Output);
        /// Takes the number of segments from the device.
        optional with_length(length: u32);
    }
}

impl<T: Element, O: Reducer<T>> Op<T> for ReduceOffsets<O> {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let (name, op) = (INFO.name, self.op.operator());
        if !WORDS.contains(&T::DTYPE) {
            return Err(err!(Unsupported, "{name}: elements of {}; convert them to f32, i32 or u32", T::DTYPE));
        }
        let monoid = Monoid::new(&op, T::DTYPE).map_err(|e| e.context(name))?;
        let output = op.output(T::DTYPE).map_err(|e| e.context(name))?;
        let &Self { n, segments, counted, .. } = self;
        let mut program = Program::of_only_variant(name, &self.variant, VARIANTS, profile)?;
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        let offsets = operand("offsets", crate::DType::U32, segments.saturating_add(1), Access::Read);
        let input = elements(name, "input", &[n, monoid.inputs()])?;
        program.operands = vec![operand("input", T::DTYPE, input, Access::Read), offsets];
        program.operands.extend(counted.then(|| operand("length", crate::DType::U32, 1, Access::Read)));
        let of_each = elements(name, "results", &[segments, monoid.outputs()])?;
        program.operands.push(operand("results", output, of_each, Access::Write));
        profile.check_bindings(name, &program.operands[..1], "take fewer elements at a time")?;
        profile.check_bindings(name, &program.operands[1..], "take fewer segments at a time")?;
        program.cost = Cost::of(n as f64, &program.operands);
        if segments == 0 {
            return Ok(program);
        }
        let (count, all) = (index_u32(name, "n", n)?, index_u32(name, "segments", segments)?);
        // A quarter of a short length keeps most threads busy. Beyond that each has several elements in flight.
        let average = n / segments;
        let lanes = average.div_ceil(4).min(32).max(average.div_ceil(32)).next_power_of_two().min(256);
        let (limit, tiles) = (lanes * ROUNDS, n / TILE);
        let walkers = segments.min(n / limit + 1).min(MAX_WALKERS);
        let params = ReduceOffsetsParams {
            n: count,
            segments: all,
            limit: limit as u32,
            tiles: tiles as u32,
            walkers: walkers as u32,
        };
        // The list's head: the number of long segments, and a bit for each tile.
        let head = 1 + tiles.div_ceil(32);
        let listed = program.scratch(4 * (head + if n > limit { segments } else { 0 }) as u64);
        if n > limit {
            let what = format_args!("a list of {segments} segments");
            profile.check_scratch(name, what, listed.size, "take fewer segments at a time")?;
            program.append(fill(head, [0; 2], profile)?, &[listed.resource]);
        }
        let [input, offsets, results] =
            [0, 1, 2 + usize::from(counted)].map(|i| Binding::operand(i, &program.operands));
        let length = counted.then(|| Binding::operand(2, &program.operands));
        let spec = monoid.spec().flag("ORDERED", !op.commutes());
        let spec = |step, last| spec.clone().flag(step, true).flag("FINAL", last);
        let kernel = |entry, spec| Kernel::library("primitives/reduce_offsets", entry, spec);
        let each = kernel(
            "reduce_offsets_segments",
            limited(spec("SEGMENTS", true), counted, 5).constant("LANES", lanes as u32),
        );
        let each = program.kernel(each);
        let grid = Grid::fold((segments as u64).div_ceil(256 / lanes as u64));
        let at = program.dispatches.len();
        let bindings = [input, results, offsets, listed].into_iter().chain(length).collect();
        program.dispatch(each, &params, bindings, grid);
        if let Some(length) = length {
            launch_for(&mut program, length, &[(at, Covered::new(0, all, 256 / lanes as u32))]);
        }
        if n <= limit {
            return Ok(program);
        }
        let partials = program.scratch(monoid.bytes() * tiles.max(1) as u64);
        if tiles > 0 {
            let kernel = program.kernel(kernel("reduce_offsets_tiles", spec("TILES", false)));
            program.dispatch(kernel, &params, vec![input, partials, listed], Grid::fold(tiles as u64));
        }
        let long = program.kernel(kernel("reduce_offsets_long", spec("LONG", true)));
        let bindings = vec![input, results, offsets, listed, partials];
        program.dispatch(long, &params, bindings, Grid::fold(walkers as u64));
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "reduce-offsets",
    about: "the elements of each segment combined, from one offset to the next",
    inputs: &[Input::new("input", "(n)"), Input::new("offsets", "u32 (s+1)")],
    outputs: &[("results", "(s, each)")],
    types: &WORDS,
    options: &[Setting::word("op", || Operator::BUILT_IN.map(|op| op.name()).to_vec()), STATE, LENGTH],
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
    let (length, results) = asked.length(1, elements.results(&[segments]))?;
    let (counted, input) = (length.is_some(), elements.input);
    let (dtype, variant) = (input.dtype(), asked.variant().to_owned());
    let operands: Vec<_> = [Role::Given(input), offsets].into_iter().chain(length).chain([results]).collect();
    by_state!(asked, dtype, [f32, i32, u32], (op, T) => {
        Ok(OpCall::new::<T>(ReduceOffsets { op, n, segments, counted, variant }, operands))
    }, else by_operator!(asked, [Sum, Prod, Min, Max, ArgMin, ArgMax], op => {
        let reduce = ReduceOffsets { op, n, segments, counted, variant };
        by_type!(asked, dtype, [f32, i32, u32], T => Ok(OpCall::new::<T>(reduce, operands)))
    }))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    Ok(vec![
        Op::<f32>::lower(&ReduceOffsets::new(Sum, 100_000, 99).variant(variant), profile)?,
        Op::<f32>::lower(&ReduceOffsets::new(Sum, 100_000, 99).counted().variant(variant), profile)?,
        Op::<i32>::lower(&ReduceOffsets::new(Max, 3, 99).variant(variant), profile)?,
        Op::<u32>::lower(&ReduceOffsets::new(Min, 1000, 9).variant(variant), profile)?,
        Op::<f32>::lower(&ReduceOffsets::new(ArgMin, 10_000, 900).variant(variant), profile)?,
        Op::<i32>::lower(&ReduceOffsets::new(ArgMax, 10_000, 2).variant(variant), profile)?,
        Op::<u32>::lower(&ReduceOffsets::new(Sum64, 10_000, 90).variant(variant), profile)?,
        Op::<f32>::lower(&ReduceOffsets::new(Affine::maps(), 10_000, 90).variant(variant), profile)?,
        Op::<f32>::lower(&ReduceOffsets::new(MeanVariance::sample(), 1000, 9).variant(variant), profile)?,
    ])
}
