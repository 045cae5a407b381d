use crate::program::prelude::*;

/// Finds the modified rotation H that makes the second of `(sqrt(d1) x1, sqrt(d2) y1)` 0: `h11 x1 + h12 y1 = x`,
/// `h21 x1 + h22 y1 = 0`, without a square root.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let [d1, d2, x1, y1] = [1.0f32, 1.0, 1.0, 2.0].map(|x| gpu.upload(&[x]));
/// let (d1, d2, x1, y1, param) = (d1?, d2?, x1?, y1?, gpu.alloc::<f32>(5)?);
/// let plan = Rotmg::new().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &d1, &d2, &x1, &y1, &param)?;
/// rec.submit()?;
/// assert_eq!((x1.read()?, param.read()?), (vec![2.5], vec![1.0, 0.5, -1.0, 1.0, 0.5]));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `d1`, `d2`, `x1` and `y1` have one element each, `param` five, as [`Rot::modified`](crate::Rot::modified) and
/// [`Rot::with_param`](crate::Rot::with_param) take them: a flag, h11, h21, h12, h22. `d1`, `d2` and `x1` become those
/// of the rotated vector. They must not overlap.
///
/// | flag | H |
/// |---|---|
/// | 0 | h11 = h22 = 1 |
/// | 1 | h12 = 1, h21 = -1 |
/// | -1 | any; 0 with all results if `d1` is below 0, or the rotated one would be |
/// | -2 | the identity, if `d2 y1` is 0; all else stays |
///
/// H is written whole; BLAS leaves elements as they were that the flag states. Results `d1` and `abs(d2)` that are not
/// 0 are scaled by powers of 4096^2 to between 4096^-2 and 4096^2, and rows of H by powers of 4096.
///
/// # Precision and determinism
/// A few units in the last place of f32; more if `d2` is below 0 and the two terms nearly cancel. As in BLAS products
/// may overflow or underflow. Results for infinities and NaN are not defined.
///
/// # Cost
/// One thread in one dispatch: for numbers that are on the device. No scratch.
///
/// # Variants
/// `scaled`: results are scaled as in BLAS.
///
/// # Errors
/// [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// C. L. Lawson, R. J. Hanson, D. R. Kincaid, F. T. Krogh, *Basic linear algebra subprograms for Fortran usage* (1979);
/// `shaders/dense/rotmg.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotmg {
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("scaled", "one thread; results are scaled as in BLAS")];

kernel_params! { struct RotmgParams { pairs: u32 } }

/// The operands but `param`.
const NUMBERS: [&str; 4] = ["d1", "d2", "x1", "y1"];

impl Default for Rotmg {
    fn default() -> Self {
        Self::new()
    }
}

impl Rotmg {
    /// Takes one pair of numbers.
    pub fn new() -> Self {
        Self { variant: "auto".into() }
    }

    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let operand = |name, len, access| Operand { name, dtype, len, access };
        program.operands = NUMBERS.map(|name| operand(name, 1, Access::ReadWrite)).to_vec();
        program.operands[3].access = Access::Read;
        program.operands.push(operand("param", 5, Access::Write));
        program.cost = Cost::of(20.0, &program.operands);
        let kernel = program.kernel(Kernel::of_file("dense/rotmg", Spec::new()));
        let bindings = (0..5).map(|i| Binding::operand(i, &program.operands)).collect();
        program.dispatch(kernel, &RotmgParams { pairs: 1 }, bindings, Grid::fold(1));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Rotmg, T {
        fn record(d1: T, d2: T, x1: T, y1: T, param: T);
    }
}

lowered_as!(Rotmg: f32);

pub(super) const INFO: Operation = Operation {
    name: "rotmg",
    about: "the modified rotation that makes the second of (sqrt(d1) x1, sqrt(d2) y1) 0",
    inputs: &[Input::new("d1", "(1)"), Input::new("d2", "(1)"), Input::new("x1", "(1)"), Input::new("y1", "(1)")],
    outputs: &[("d1", "(1)"), ("d2", "(1)"), ("x1", "(1)"), ("param", "(5)")],
    types: &[DType::F32],
    domains: &[("d1", Domain::Finite), ("d2", Domain::Finite), ("x1", Domain::Finite), ("y1", Domain::Finite)],
    make: Some(make),
    variants: Rotmg::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[1], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let d1 = asked.any("d1")?;
    asked.check_type(&d1)?;
    asked.check("d1", &d1, &[1], DType::F32)?;
    let (d2, x1, y1) = (asked.like("d2", &[1])?, asked.like("x1", &[1])?, asked.like("y1", &[1])?);
    let updated = [d1, d2, x1].map(Role::Updated);
    let operands = updated.into_iter().chain([Role::Given(y1), Role::Result(vec![5])]).collect();
    Ok(OpCall::new::<f32>(Rotmg::new().variant(asked.variant()), operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    Ok(vec![Rotmg::new().variant(variant).lower_as(DType::F32, profile)?])
}
