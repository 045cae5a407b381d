use crate::program::prelude::*;

/// Swaps two vectors, in place: `x[i], y[i] = y[i], x[i]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[3.0f32, 4.0])?);
/// let plan = Swap::new(2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!((x.read()?, y.read()?), (vec![3.0, 4.0], vec![1.0, 2.0]));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` and `y` have `n` elements each; `n` may be 0. They must not overlap. [`incx`](Self::incx) and
/// [`incy`](Self::incy) are BLAS's increments.
///
/// # Types
/// f32, f16, i32, u32.
///
/// # Precision and determinism
/// Bits move as they are.
///
/// # Cost
/// Both vectors are read and written. One dispatch, no scratch.
///
/// # Variants
/// `words`: a thread swaps a word of 32 bits.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): another element type.
/// - [`TooLarge`](ErrorKind::TooLarge): a vector above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/dense/swap.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    n: usize,
    increments: Increments,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("words", "a thread swaps a word of 32 bits")];

kernel_params! { struct SwapParams { n: u32 } }

impl Swap {
    /// Takes vectors of `n` elements.
    pub fn new(n: usize) -> Self {
        Self { n, increments: Increments::default(), variant: "auto".into() }
    }

    increments!(incx x, incy y);
    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        self.increments.lower(INFO.name, 1, profile, || self.lower_unit(dtype, profile))
    }

    fn lower_unit(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let operand = |name| Operand { name, dtype, len: self.n, access: Access::ReadWrite };
        program.operands = vec![operand("x"), operand("y")];
        profile.check_bindings(INFO.name, &program.operands, "split the vectors")?;
        program.cost = Cost { flop: 0.0, bytes: (4 * self.n * dtype.size()) as f64 };
        if self.n > 0 {
            let pack = 4 / dtype.size() as u64;
            let spec = Spec::new().constant("PACK", pack as u32);
            let kernel = program.kernel(Kernel::of_file("dense/swap", spec));
            let bindings = [0, 1].map(|i| Binding::operand(i, &program.operands)).to_vec();
            let words = (self.n as u64).div_ceil(pack);
            let params = SwapParams { n: self.n as u32 };
            program.dispatch(kernel, &params, bindings, Grid::fold(words.div_ceil(256)));
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Swap, T {
        fn record(x: T, y: T);
    }
}

lowered_as!(Swap: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "swap",
    about: "swaps two vectors",
    inputs: &[Input::new("x", "(n)"), Input::new("y", "(n)")],
    outputs: &[("x", "(n)"), ("y", "(n)")],
    types: &[DType::F32, DType::F16, DType::I32, DType::U32],
    domains: &[("x", Domain::Bits), ("y", Domain::Bits)],
    options: &[INCX, INCY],
    make: Some(make),
    variants: Swap::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[1000], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, [n]) = asked.array("x")?;
    let y = asked.like("y", &[n])?;
    let (op, dtype) = (Swap::new(n).variant(asked.variant()), x.dtype());
    let operands = vec![Role::Updated(x), Role::Updated(y)];
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let of = |dtype| Swap::new(1001).variant(variant).lower_as(dtype, profile);
    Ok(vec![of(DType::F32)?, of(DType::F16)?])
}
