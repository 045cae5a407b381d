use crate::program::prelude::*;

/// Adds an outer product to a matrix, in place: `a[i, j] = alpha x[i] y[j] + a[i, j]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[10.0f32, 20.0, 30.0])?);
/// let a = gpu.upload(&[1.0f32; 6])?;
/// let plan = Ger::new(2, 3).alpha(0.5).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y, &a)?;
/// rec.submit()?;
/// assert_eq!(a.read()?, [6.0, 11.0, 16.0, 11.0, 21.0, 31.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` has m elements, `y` n, `a` m x n, row-major without gaps. Any extent may be 0. [`outer`](Self::outer) only
/// writes `a`. `a` must be another wgpu buffer than `x` and `y`, which may be the same.
/// [`incx`](Self::incx) and [`incy`](Self::incy) are BLAS's increments.
///
/// # Types
/// f32 and f16.
///
/// # Precision and determinism
/// Three roundings in f32, or two if the device fuses the last product with the sum; f16 is rounded at the end.
/// Products may overflow before the sum. The same device gives the same bits in every run.
///
/// # Cost
/// `3 m n` flop; `a` is read and written once. One dispatch, no scratch.
///
/// # Variants
/// `words`: a thread makes a word of 32 bits.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): another element type.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/dense/ger.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Ger {
    m: usize,
    n: usize,
    alpha: f32,
    outer: bool,
    increments: Increments,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("words", "a thread makes one word of 32 bits")];

kernel_params! { struct GerParams { m: u32, n: u32, alpha: f32 } }

impl Ger {
    /// Takes the extents of the matrix. `alpha` is 1.
    pub fn new(m: usize, n: usize) -> Self {
        Self { m, n, alpha: 1.0, outer: false, increments: Increments::default(), variant: "auto".into() }
    }

    /// Sets the factor of the outer product.
    #[must_use]
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    /// Stores the outer product itself: `a[i, j] = alpha x[i] y[j]`.
    #[must_use]
    pub fn outer(mut self) -> Self {
        self.outer = true;
        self
    }

    increments!(incx x, incy y);
    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        self.increments.lower(INFO.name, 1, profile, || self.lower_unit(dtype, profile))
    }

    fn lower_unit(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { m, n, .. } = *self;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let operand = |name, len, access| Operand { name, dtype, len, access };
        let len = elements(INFO.name, "a", &[m, n])?;
        program.operands = vec![
            operand("x", m, Access::Read),
            operand("y", n, Access::Read),
            operand("a", len, if self.outer { Access::Write } else { Access::ReadWrite }),
        ];
        profile.check_bindings(INFO.name, &program.operands, "update blocks in separate calls")?;
        let passes = if self.outer { 1 } else { 2 };
        let bytes = (m + n + passes * len) * dtype.size();
        program.cost = Cost { flop: 3.0 * len as f64, bytes: bytes as f64 };
        if len > 0 {
            let spec = Spec::new().slot("element", element_fragment(dtype)).flag("UPDATES", !self.outer);
            let kernel = program.kernel(Kernel::of_file("dense/ger", spec));
            let bindings = (0..3).map(|i| Binding::operand(i, &program.operands)).collect();
            let params = GerParams { m: m as u32, n: n as u32, alpha: self.alpha };
            let words = (len as u64 * dtype.size() as u64).div_ceil(4);
            program.dispatch(kernel, &params, bindings, Grid::fold(words.div_ceil(256)));
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Ger, T {
        fn record(x: T, y: T, a: T);
    }
}

lowered_as!(Ger: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "ger",
    about: "a matrix and alpha times the outer product of two vectors; without a the product",
    inputs: &[Input::new("x", "(m)"), Input::new("y", "(n)"), Input::optional("a", "(m, n)")],
    outputs: &[("a", "(m, n)")],
    types: &[DType::F32, DType::F16],
    options: &[Setting::number("alpha", "1"), INCX, INCY],
    make: Some(make),
    variants: Ger::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[40], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, [m]) = asked.array("x")?;
    asked.check_type(&x)?;
    let dtype = x.dtype();
    let (y, [n]) = asked.free_of("y", [33], dtype)?;
    let a = if asked.has_more() { Some(asked.like("a", &[m, n])?) } else { None };
    let op = Ger::new(m, n).alpha(asked.settings().number("alpha")?).variant(asked.variant());
    let op = op.when(a.is_none(), Ger::outer);
    let result = a.map_or(Role::Result(vec![m, n]), Role::Updated);
    let operands = vec![Role::Given(x), Role::Given(y), result];
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Ger::new(5, 7).variant(variant);
    let mut programs = Vec::new();
    for op in [op.clone(), op.outer()] {
        programs.push(Op::<f32>::lower(&op, profile)?);
        programs.push(Op::<f16>::lower(&op, profile)?);
    }
    Ok(programs)
}
