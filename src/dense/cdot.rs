use crate::program::prelude::*;

/// Multiplies two complex vectors to a scalar: `result = x[0] y[0] + ... + x[n - 1] y[n - 1]`, BLAS's `cdotu`; with
/// [`conjugated`](Self::conjugated) x, `cdotc`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, result) = (gpu.upload(&[1.0f32, 2.0, 0.0, 3.0])?, gpu.alloc::<f32>(2)?); // 1 + 2i, 3i
/// let plan = Cdot::new(2).conjugated().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &x, &result)?;
/// rec.submit()?;
/// assert_eq!(result.read()?, [14.0, 0.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` and `y` have `n` complex numbers each, 2 n elements of f32 as [`Caxpy`](crate::Caxpy) has them, and may be the
/// same; `result` has one, 2 elements. `n` may be 0, which gives 0. `result` must be another wgpu buffer.
/// [`incx`](Self::incx) and [`incy`](Self::incy) are BLAS's increments.
///
/// # Precision and determinism
/// Each part is a sum of `2 n` products in f32, in a tree of about `log2(n) + n / (workgroups * 256)` steps. The same
/// device gives the same bits in every run.
///
/// # Cost
/// `8 n` flop; each vector is read once. Two dispatches, one for short vectors, and scratch of a few KiB.
///
/// # Variants
/// `coarsened`: a bounded number of workgroups.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): a vector above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/dense/cdot.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cdot {
    n: usize,
    conjugated: bool,
    increments: Increments,
    variant: String,
}

const VARIANTS: &[Variant] =
    &[Variant::portable("coarsened", "a bounded number of workgroups walks both vectors; two passes")];

kernel_params! { struct CdotParams { n: u32, parts: u32 } }

impl Cdot {
    /// Takes vectors of `n` numbers.
    pub fn new(n: usize) -> Self {
        Self { n, conjugated: false, increments: Increments::default(), variant: "auto".into() }
    }

    /// Takes the conjugates of `x`.
    #[must_use]
    pub fn conjugated(mut self) -> Self {
        self.conjugated = true;
        self
    }

    increments!(incx x, incy y);
    variants!(variant);

    pub(crate) fn is_conjugated(&self) -> bool {
        self.conjugated
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        self.increments.lower(INFO.name, 2, profile, || self.lower_unit(dtype, profile))
    }

    fn lower_unit(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let name = INFO.name;
        let mut program = Program::of_only_variant(name, &self.variant, VARIANTS, profile)?;
        let operand = |name, len, access| Operand { name, dtype, len, access };
        let len = elements(name, "x", &[self.n, 2])?;
        program.operands =
            vec![operand("x", len, Access::Read), operand("y", len, Access::Read), operand("result", 2, Access::Write)];
        profile.check_bindings(name, &program.operands, "split the vectors and add the results")?;
        program.cost = Cost::of(8.0 * self.n as f64, &program.operands);
        let n = index_u32(name, "n", self.n)?;
        // Fewer than eight steps of a thread do not pay for another workgroup.
        let most = if profile.quirks.few_cores { 64 } else { 1056 };
        let parts = u64::from(n).div_ceil(8 * 256).clamp(1, most);
        let [x, y, result] = [0, 1, 2].map(|i| Binding::operand(i, &program.operands));
        if n == 0 {
            program.append(fill(2, [0; 2], profile)?, &[result.resource]);
            return Ok(program);
        }
        let sums = if parts > 1 { program.scratch(8 * parts) } else { result };
        let kernel = Kernel::of_file("dense/cdot", Spec::new().flag("CONJUGATED", self.conjugated));
        let kernel = program.kernel(kernel);
        let params = CdotParams { n, parts: parts as u32 };
        program.dispatch(kernel, &params, vec![x, y, sums], Grid::fold(parts));
        if parts > 1 {
            let kernel = program.kernel(Kernel::of_file("dense/cdot", Spec::new().flag("FINISH", true)));
            let params = CdotParams { n: parts as u32, parts: 1 };
            program.dispatch(kernel, &params, vec![sums, result], Grid::fold(1));
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Cdot, T {
        fn record(x: T, y: T, result: T);
    }
}

lowered_as!(Cdot: f32);

pub(super) const INFO: Operation = Operation {
    name: "cdot",
    about: "the scalar product of two complex vectors; with conj of the conjugate of the first",
    inputs: &[Input::new("x", "(n, 2)"), Input::new("y", "(n, 2)")],
    outputs: &[("result", "(2)")],
    types: &[DType::F32],
    options: &[Setting::flag("conj"), INCX, INCY],
    domains: &[("x", Domain::Finite), ("y", Domain::Finite)],
    make: Some(make),
    variants: Cdot::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[1000, 2], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, [n, _]) = super::cgemm::asked_pairs::<2>(asked, "x")?;
    let y = asked.like("y", &[n, 2])?;
    let op = Cdot::new(n).variant(asked.variant()).when(asked.settings().has("conj"), Cdot::conjugated);
    Ok(OpCall::new::<f32>(op, vec![Role::Given(x), Role::Given(y), Role::Result(vec![2])]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = |n| Cdot::new(n).variant(variant);
    Ok(vec![Op::<f32>::lower(&op(100_000), profile)?, Op::<f32>::lower(&op(3).conjugated(), profile)?])
}
