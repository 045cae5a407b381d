use super::DTYPES;
use crate::program::prelude::*;

/// Checks whether an array is sorted: `result` is 1 if no element belongs before the one before it, and 0 otherwise.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, result) = (gpu.upload(&[9u32, 4, 4, 1])?, gpu.alloc::<u32>(1)?);
/// let plan = IsSorted::new(4).descending().plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &result)?;
/// rec.submit()?;
/// assert_eq!(result.read()?, [1]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` has `n` elements; fewer than two are sorted. `result` has one u32. With
/// [`counted`](IsSorted::counted) an operand `length` of one u32 holds the number of elements, at most `n`.
///
/// # Types and order
/// f32, f16, i32, u32; ascending, or [`descending`](IsSorted::descending). Floats are compared by value: -0 equals +0;
/// NaN equals NaN and comes last either way. What [`LowerBound`](crate::LowerBound) and
/// [`SetUnion`](crate::SetUnion) take is sorted so.
///
/// # Precision and determinism
/// Exact, and the same on every device.
///
/// # Cost
/// The input is read once. Two dispatches, no scratch.
///
/// # Variants
/// `pairs`: a thread compares eight pairs of neighbours.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an input above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/primitives/is_sorted.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsSorted {
    n: usize,
    descending: bool,
    counted: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("pairs", "a thread compares eight pairs of neighbours")];

kernel_params! { struct IsSortedParams { n: u32 } }

impl IsSorted {
    /// Checks `n` elements.
    pub fn new(n: usize) -> Self {
        Self { n, descending: false, counted: false, variant: "auto".into() }
    }

    /// Wants the largest first. The default is the smallest first.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.descending = true;
        self
    }

    counted!(counted, "elements", "Elements behind it are ignored.");

    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands.push(operand("input", dtype, self.n, Access::Read));
        program.operands.extend(self.counted.then(|| operand("length", DType::U32, 1, Access::Read)));
        program.operands.push(operand("result", DType::U32, 1, Access::Write));
        profile.check_bindings(INFO.name, &program.operands, "check parts that overlap by one element")?;
        let params = IsSortedParams { n: index_u32(INFO.name, "n", self.n)? };
        program.cost = Cost::of(self.n as f64, &program.operands);
        let whole = |i| Binding::operand(i, &program.operands);
        let result = whole(program.operands.len() - 1);
        let bindings = [whole(0), result].into_iter().chain(self.counted.then(|| whole(1))).collect();
        program.append(fill(1, [1, 1], profile)?, &[result.resource]);
        if self.n > 1 {
            let spec = Spec::new().slot("element", element_fragment(dtype)).flag("DESCENDING", self.descending);
            let spec = spec.flag("FLOAT", dtype.is_float()).flag("SIGNED", dtype == DType::I32);
            let spec = limited(spec, self.counted, 3);
            let kernel = program.kernel(Kernel::of_file("primitives/is_sorted", spec));
            program.dispatch(kernel, &params, bindings, Grid::fold((self.n as u64).div_ceil(2048)));
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] IsSorted, T {
        fn record(input: T, result: u32);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(IsSorted: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "is-sorted",
    about: "1 if no element belongs before the one before it, else 0",
    inputs: &[Input::new("input", "(n)")],
    outputs: &[("result", "u32 ()")],
    types: &DTYPES,
    options: &[Setting::flag("descending"), LENGTH],
    domains: &[("input", Domain::Increasing)],
    make: Some(make),
    variants: IsSorted::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    let op = IsSorted::new(n).variant(asked.variant());
    let op = op.when(asked.settings().has("descending"), IsSorted::descending);
    let length = asked.length(1, vec![n])?.0;
    let op = op.when(length.is_some(), IsSorted::counted);
    let (dtype, result) = (input.dtype(), Role::Result(Vec::new()));
    let operands = [Role::Given(input)].into_iter().chain(length).chain([result]).collect();
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = IsSorted::new(10_000).variant(variant);
    let descending = op.clone().descending();
    let counted = op.clone().counted();
    let all = |dtype: &DType| [&op, &descending, &counted].map(|op| op.lower_as(*dtype, profile));
    DTYPES.iter().flat_map(all).collect()
}
