use super::WORDS;
use super::sort::RadixSort;
use crate::program::prelude::*;
use std::sync::Arc;

/// Moves elements into up to 256 parts, each in order: first those of part 0, then those of part 1, and so on. Three
/// parts are the three-way partition of quicksort.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[5.0f32, -1.0, 0.0, 2.0, -3.0, 0.0])?;
/// let (output, counts) = (gpu.alloc::<f32>(6)?, gpu.alloc::<u32>(3)?);
/// let by_sign = "fn part(x: T) -> u32 { return select(select(2u, 1u, x == 0.0), 0u, x < 0.0); }";
/// let plan = SplitParts::by(6, 3, by_sign).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record_by(&mut rec, &x, &output, &counts)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [-1.0, -3.0, 0.0, 0.0, 5.0, 2.0]);
/// assert_eq!(counts.read()?, [2, 2, 2]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` and `output` have `n` elements, `counts` (u32) one for each part. [`new`](Self::new) adds `parts` of `n`
/// u32, the number of each element's part; [`by`](Self::by) has your function instead. Numbers beyond the last part
/// count as the last. `output` and `counts` must not share a buffer with the others. `n` may be 0. With
/// [`counted`](Self::counted) an operand `length` of one u32 holds the number of elements, at most `n`.
///
/// # Types
/// f32, i32 and u32. Move elements of other types by their positions: the order of the parts is an
/// [`Argsort`](crate::Argsort) of their numbers, by which [`Gather`](crate::Gather) moves rows of any type.
///
/// # Precision and determinism
/// Elements move as bits. Every variant gives the same result in every run.
///
/// # Cost
/// That of one pass of [`RadixSort`] with values, and a dispatch that counts. Scratch: 4 bytes an element, and that of
/// the pass.
///
/// # Variants
/// Those of [`RadixSort`], chosen as there.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): no parts or more than 256, an unknown variant.
/// - [`Unsupported`](ErrorKind::Unsupported): another element type, a variant that the device cannot run.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
/// - [`Shader`](ErrorKind::Shader): your function's text; the error names the line.
///
/// # Algorithm
/// A pass of a radix sort whose keys are the numbers of the parts: `shaders/primitives/split_key.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitParts {
    n: usize,
    parts: usize,
    function: Option<Arc<str>>,
    counted: bool,
    variant: String,
}

/// Maximum of parts: digits of one pass.
const MAX_PARTS: usize = 256;

kernel_params! { struct SplitPartsParams { n: u32, parts: u32 } }

/// How elements become numbers of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartKeys {
    parts: u32,
    /// The function, and the type that it takes; without it elements are the numbers.
    function: Option<(DType, Arc<str>)>,
}

impl PartKeys {
    /// Makes the keys of the first pass of a sort.
    pub(super) fn specialise(&self, spec: Spec) -> Spec {
        let spec = spec.slot("mapped", Fragment::Library("primitives/split_key")).constant("PARTS", self.parts);
        match &self.function {
            None => spec,
            Some((dtype, text)) => spec.slot("element", element_fragment(*dtype)).slot("part", Fragment::of_user(text)),
        }
    }
}

impl SplitParts {
    /// Moves `n` elements into parts by their numbers.
    pub fn new(n: usize, parts: usize) -> Self {
        Self { n, parts, function: None, counted: false, variant: "auto".into() }
    }

    /// Moves `n` elements into parts by your WGSL function `fn part(x: T) -> u32`, where `T` is the element type. It is
    /// validated, and runs as [`CustomOp`](crate::CustomOp) says. Such plans are recorded by `record_by`.
    pub fn by(n: usize, parts: usize, wgsl: &str) -> Self {
        Self { function: Some(wgsl.into()), ..Self::new(n, parts) }
    }

    counted!(counted, "elements", "Elements behind it are not moved; the output there may hold anything.");

    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { n, parts, counted, .. } = *self;
        if !(1..=MAX_PARTS).contains(&parts) {
            return Err(err!(InvalidArgument, "split-parts: {parts} parts; there must be 1 to {MAX_PARTS}"));
        }
        if !WORDS.contains(&dtype) {
            return Err(err!(Unsupported, "split-parts: elements of {dtype}; use f32, i32 or u32"));
        }
        let function = self.function.clone().map(|text| (dtype, text));
        let keys = PartKeys { parts: parts as u32, function };
        let bits = parts.next_power_of_two().trailing_zeros().max(1);
        let sort = RadixSort::new(n).with_values().bits(0..bits).keyed(keys);
        let sort = sort.when(counted, RadixSort::counted).variant(&self.variant);
        let sort = sort.lower_as(DType::U32, profile).map_err(|e| e.context(INFO.name))?;
        let mut program = Program::new(INFO.name, sort.decision.clone());
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands = vec![operand("input", dtype, n, Access::Read)];
        if self.function.is_none() {
            program.operands.push(operand("parts", DType::U32, n, Access::Read));
        }
        let keys = Resource::Operand(program.operands.len() - 1);
        let length = program.operands.len();
        if counted {
            program.operands.push(operand("length", DType::U32, 1, Access::Read));
        }
        let output = program.operands.len();
        program.operands.push(operand("output", dtype, n, Access::Write));
        program.operands.push(operand("counts", DType::U32, parts, Access::Write));
        profile.check_bindings(INFO.name, &program.operands, "split chunks in separate calls")?;
        program.cost = Cost::of(n as f64, &program.operands);
        let n = index_u32(INFO.name, "n", n)?;
        if n == 0 {
            program.append(fill(parts, [0; 2], profile)?, &[Resource::Operand(output + 1)]);
            return Ok(program);
        }
        let numbers = program.scratch(4 * u64::from(n));
        let given = [keys, Resource::Operand(0)].into_iter().chain(counted.then_some(Resource::Operand(length)));
        let operands: Vec<_> = given.chain([numbers.resource, Resource::Operand(output)]).collect();
        program.append(sort, &operands);
        let spec = limited(Spec::new(), counted, 3);
        let kernel = program.kernel(Kernel::of_file("primitives/split_parts", spec));
        let whole = |i| Binding::operand(i, &program.operands);
        let bindings = [numbers, whole(output + 1)].into_iter().chain(counted.then(|| whole(length))).collect();
        program.dispatch(kernel, &SplitPartsParams { n, parts: parts as u32 }, bindings, Grid::fold(1));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] SplitParts, T {
        fn record(input: T, parts: u32, output: T, counts: u32);
        fn record_by(input: T, output: T, counts: u32);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(SplitParts: f32, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "split-parts",
    about: "elements by the number of their part, in order within each",
    inputs: &[Input::new("input", "(n)"), Input::optional("parts", "u32 (n), unless part is given")],
    outputs: &[("output", "(n)"), ("counts", "u32 (k)")],
    types: &WORDS,
    options: &[Setting::number("k", "3"), Setting::wgsl("part"), LENGTH],
    domains: &[("input", Domain::Bits)],
    make: Some(make),
    variants: SplitParts::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

const VARIANTS: &[Variant] = super::sort::VARIANTS;

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    asked.check_type(&input)?;
    let count: usize = asked.settings().number("k")?;
    let (op, parts) = match asked.settings().word("part") {
        Some(wgsl) => (SplitParts::by(n, count, wgsl), None),
        None => (SplitParts::new(n, count), Some(asked.indices("parts", &[n], count.max(1))?)),
    };
    let (length, output) = asked.length(1, vec![n])?;
    let op = op.when(length.is_some(), SplitParts::counted).variant(asked.variant());
    let dtype = input.dtype();
    let inputs = [input].into_iter().chain(parts).map(Role::Given).chain(length);
    let operands = inputs.chain([output, Role::Result(vec![count])]).collect();
    by_type!(asked, dtype, [f32, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let text = "fn part(x: T) -> u32 { return select(0u, 1u, x > T(3)); }";
    Ok(vec![
        SplitParts::new(10_000, 3).variant(variant).lower_as(DType::U32, profile)?,
        SplitParts::new(10_000, 200).counted().variant(variant).lower_as(DType::F32, profile)?,
        SplitParts::by(10_000, 2, text).variant(variant).lower_as(DType::F32, profile)?,
        SplitParts::by(10_000, 2, text).counted().variant(variant).lower_as(DType::I32, profile)?,
    ])
}
