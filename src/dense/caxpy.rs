use crate::program::prelude::*;

/// Adds a multiple of a complex vector to another, in place: `y[i] = alpha x[i] + y[i]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1.0f32, 2.0, 0.0, 1.0])?, gpu.upload(&[10.0f32, 0.0, 0.0, 0.0])?);
/// let plan = Caxpy::new(2, [0.0, 1.0]).plan::<f32>(&gpu)?; // alpha = i
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [8.0, 1.0, -1.0, 0.0]); // 8 + i, -1
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` and `y` have `n` complex numbers each: 2 n elements of f32, each number's real part before its imaginary part,
/// as in `cuComplex` and NumPy's `complex64`. `n` may be 0. The two must be different wgpu buffers.
/// [`incx`](Self::incx) and [`incy`](Self::incy) are BLAS's increments.
///
/// # Precision and determinism
/// Each part is three sums and products in f32, some of which the device may fuse. The same device gives the same bits
/// in every run.
///
/// # Cost
/// `8 n` flop; `x` is read, `y` read and written. One dispatch, no scratch.
///
/// # Variants
/// `pairs`: a thread makes one complex number.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/dense/caxpy.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Caxpy {
    n: usize,
    alpha: [f32; 2],
    increments: Increments,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("pairs", "a thread makes one complex number")];

kernel_params! { struct CaxpyParams { n: u32, alpha_re: f32, alpha_im: f32 } }

impl Caxpy {
    /// Adds `alpha`, a real and an imaginary part, times `n` numbers.
    pub fn new(n: usize, alpha: [f32; 2]) -> Self {
        Self { n, alpha, increments: Increments::default(), variant: "auto".into() }
    }

    increments!(incx x, incy y);
    variants!(variant);

    pub(crate) fn alpha(&self) -> [f32; 2] {
        self.alpha
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        self.increments.lower(INFO.name, 2, profile, || self.lower_unit(dtype, profile))
    }

    fn lower_unit(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let name = INFO.name;
        let mut program = Program::of_only_variant(name, &self.variant, VARIANTS, profile)?;
        let len = elements(name, "x", &[self.n, 2])?;
        let operand = |name, access| Operand { name, dtype, len, access };
        program.operands = vec![operand("x", Access::Read), operand("y", Access::ReadWrite)];
        profile.check_bindings(name, &program.operands, "split the vectors")?;
        program.cost = Cost { flop: 8.0 * self.n as f64, bytes: 12.0 * len as f64 };
        let [alpha_re, alpha_im] = self.alpha;
        let params = CaxpyParams { n: index_u32(name, "n", self.n)?, alpha_re, alpha_im };
        if self.n > 0 {
            let kernel = program.kernel(Kernel::of_file("dense/caxpy", Spec::new()));
            let bindings = [0, 1].map(|i| Binding::operand(i, &program.operands)).to_vec();
            program.dispatch(kernel, &params, bindings, Grid::fold((self.n as u64).div_ceil(256)));
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Caxpy, T {
        fn record(x: T, y: T);
    }
}

lowered_as!(Caxpy: f32);

pub(super) const INFO: Operation = Operation {
    name: "caxpy",
    about: "y = alpha x + y, of complex numbers",
    inputs: &[Input::new("x", "(n, 2)"), Input::new("y", "(n, 2)")],
    outputs: &[("y", "(n, 2)")],
    types: &[DType::F32],
    options: &[Setting::number("alpha", "1"), Setting::number("alpha-im", "0"), INCX, INCY],
    domains: &[("x", Domain::Finite), ("y", Domain::Finite)],
    make: Some(make),
    variants: Caxpy::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[1000, 2], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, [n, _]) = super::cgemm::asked_pairs::<2>(asked, "x")?;
    let y = asked.like("y", &[n, 2])?;
    let settings = asked.settings();
    let alpha = [settings.number("alpha")?, settings.number("alpha-im")?];
    let op = Caxpy::new(n, alpha).variant(asked.variant());
    Ok(OpCall::new::<f32>(op, vec![Role::Given(x), Role::Updated(y)]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    Ok(vec![Op::<f32>::lower(&Caxpy::new(1001, [2.0, -1.0]).variant(variant), profile)?])
}
