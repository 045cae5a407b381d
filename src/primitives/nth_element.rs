use super::WORDS;
use super::sort::key_spec;
use super::top_k::{kth_number, word_parts};
use crate::program::prelude::*;

/// Finds the element at a rank: `output[0] = sorted(input)[rank]`, without sorting. Rank `n / 2` is the median.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, median) = (gpu.upload(&[3.0f32, 9.0, -1.0, 7.0, 5.0])?, gpu.alloc::<f32>(1)?);
/// let plan = NthElement::new(5, 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &median)?;
/// rec.submit()?;
/// assert_eq!(median.read()?, [5.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` has `n` elements, `output` one; they must be different wgpu buffers. The rank counts from 0 and is below
/// `n`. With [`counted`](Self::counted) an operand `length` of one u32 holds the number of elements.
///
/// # Types and order
/// f32, i32 and u32 in the order of [`RadixSort`](crate::RadixSort), ascending, or
/// [`largest`](Self::largest) first. NaN is last either way; a result that is NaN has the bits 0x7fc00000.
///
/// # Precision and determinism
/// Exact, and the same on every device.
///
/// # Cost
/// Reads the input three times. 7 dispatches, 8 KiB of scratch.
///
/// # Variants
/// `radix`: a radix select.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a rank of `n` or more, or an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an input above the largest buffer.
///
/// # Algorithm
/// Finds the digits of the result, the highest first, by counts: `shaders/primitives/top_k_digits.wgsl`,
/// `top_k_pick.wgsl` and `nth_element.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NthElement {
    n: usize,
    rank: usize,
    largest: bool,
    counted: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("radix", "finds the digits of the result by counts")];

kernel_params! { struct NthElementParams { flip: u32 } }

impl NthElement {
    /// Finds the element at this rank, from 0, of `n` elements.
    pub fn new(n: usize, rank: usize) -> Self {
        Self { n, rank, largest: false, counted: false, variant: "auto".into() }
    }

    /// Counts ranks from the largest element. The default is from the smallest.
    #[must_use]
    pub fn largest(mut self) -> Self {
        self.largest = true;
        self
    }

    counted!(
        counted,
        "elements",
        "If the rank is not below it, the result is the last element in order; of none, NaN or the integer that comes first."
    );
    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let &Self { n, rank, .. } = self;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        if rank >= n {
            return Err(err!(
                InvalidArgument,
                "nth-element: the rank is {rank} and n is {n}; it counts from 0 and must be below n"
            ));
        }
        let k = index_u32(INFO.name, "n", n).map(|_| rank as u32 + 1)?;
        let operand = |name, len, access| Operand { name, dtype, len, access };
        program.operands = vec![operand("input", n, Access::Read)];
        let length = Operand { dtype: DType::U32, ..operand("length", 1, Access::Read) };
        program.operands.extend(self.counted.then_some(length));
        program.operands.push(operand("output", 1, Access::Write));
        profile.check_buffers(INFO.name, &program.operands, "count by a histogram in parts")?;
        program.cost = Cost::of(3.0 * n as f64, &program.operands);
        let order = key_spec(dtype, self.largest)?;
        let parts: Vec<_> = word_parts(n as u64, profile).collect();
        let last = program.operands.len() - 1;
        let length = self.counted.then(|| Binding::operand(1, &program.operands));
        let search = kth_number(&mut program, (Resource::Operand(0), length), &parts, &order, k, profile);
        let spec = Spec::new().flag("FLOAT", dtype == DType::F32);
        let kernel = program.kernel(Kernel::of_file("primitives/nth_element", spec));
        // As `key_spec` converts keys.
        let sign = if dtype == DType::I32 { 1 << 31 } else { 0 };
        let flip = if self.largest { u32::MAX } else { 0 } ^ sign;
        let bindings = vec![search, Binding::operand(last, &program.operands)];
        program.dispatch(kernel, &NthElementParams { flip }, bindings, Grid::fold(1));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] NthElement, T {
        fn record(input: T, output: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(NthElement: f32, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "nth-element",
    about: "the element at a rank of the sorted input, without sorting",
    inputs: &[Input::new("input", "(n)")],
    outputs: &[("output", "()")],
    types: &WORDS,
    options: &[Setting::number("n", ""), Setting::flag("largest"), LENGTH],
    domains: &[("input", Domain::Runs)],
    make: Some(make),
    variants: NthElement::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100], options: &[("n", "50")] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    let settings = asked.settings();
    let rank = settings.maybe("n")?.ok_or_else(|| {
        err!(InvalidArgument, "nth-element: --n is missing; give the rank of the element to find, below {n}")
    })?;
    let (length, output) = (asked.length(1, vec![n])?.0, Role::Result(Vec::new()));
    let op = NthElement::new(n, rank).when(settings.has("largest"), NthElement::largest);
    let op = op.when(length.is_some(), NthElement::counted).variant(asked.variant());
    let dtype = input.dtype();
    let operands = [Role::Given(input)].into_iter().chain(length).chain([output]).collect();
    by_type!(asked, dtype, [f32, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = NthElement::new(10_001, 5000).variant(variant);
    Ok(vec![
        op.lower_as(DType::F32, profile)?,
        op.lower_as(DType::I32, profile)?,
        op.clone().largest().lower_as(DType::U32, profile)?,
        op.counted().lower_as(DType::F32, profile)?,
    ])
}
