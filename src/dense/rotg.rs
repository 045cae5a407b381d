use crate::program::prelude::*;

/// Finds the rotation that takes (a, b) to (r, 0): `c a + s b = r`, `c b - s a = 0`, `c^2 + s^2 = 1`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (a, b) = (gpu.upload(&[0.0f32])?, gpu.upload(&[2.0f32])?);
/// let rotation = gpu.alloc::<f32>(2)?;
/// let plan = Rotg::new().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b, &rotation)?;
/// rec.submit()?;
/// assert_eq!((a.read()?, rotation.read()?), (vec![2.0], vec![0.0, 1.0]));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `a` and `b` have one element each, `rotation` two: c and s, as [`Rot::with_rotation`](crate::Rot::with_rotation)
/// takes them. `a` becomes r, and `b` BLAS's z, from which c and s follow: s if |z| < 1, 1 / c if |z| > 1; c is 0 if z
/// is 1. r has the sign of the larger of a and b. The three must not overlap.
///
/// # Precision and determinism
/// A few units in the last place of f32, without overflow or underflow of squares: r overflows only if it is too large
/// for f32. With a b of 0 c is 1, else with an a of 0 s is 1. Results for infinities and NaN are not defined.
///
/// # Cost
/// One thread in one dispatch: for numbers that are on the device. No scratch.
///
/// # Variants
/// `scaled`: the larger number is factored out.
///
/// # Errors
/// [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// E. Anderson, *Algorithm 978: Safe scaling in the level 1 BLAS* (2017); `shaders/dense/rotg.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotg {
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("scaled", "one thread; the larger number is factored out")];

kernel_params! { struct RotgParams { pairs: u32 } }

impl Default for Rotg {
    fn default() -> Self {
        Self::new()
    }
}

impl Rotg {
    /// Takes one pair of numbers.
    pub fn new() -> Self {
        Self { variant: "auto".into() }
    }

    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let operand = |name, len, access| Operand { name, dtype, len, access };
        program.operands = vec![
            operand("a", 1, Access::ReadWrite),
            operand("b", 1, Access::ReadWrite),
            operand("rotation", 2, Access::Write),
        ];
        program.cost = Cost::of(10.0, &program.operands);
        let kernel = program.kernel(Kernel::of_file("dense/rotg", Spec::new()));
        let bindings = [0, 1, 2].map(|i| Binding::operand(i, &program.operands)).to_vec();
        program.dispatch(kernel, &RotgParams { pairs: 1 }, bindings, Grid::fold(1));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Rotg, T {
        fn record(a: T, b: T, rotation: T);
    }
}

lowered_as!(Rotg: f32);

pub(super) const INFO: Operation = Operation {
    name: "rotg",
    about: "the rotation that takes (a, b) to (r, 0): r, z, and c and s",
    inputs: &[Input::new("a", "(1)"), Input::new("b", "(1)")],
    outputs: &[("r", "(1)"), ("z", "(1)"), ("rotation", "(2)")],
    types: &[DType::F32],
    domains: &[("a", Domain::Finite), ("b", Domain::Finite)],
    make: Some(make),
    variants: Rotg::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[1], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let a = asked.any("a")?;
    asked.check_type(&a)?;
    asked.check("a", &a, &[1], DType::F32)?;
    let b = asked.like("b", &[1])?;
    let op = Rotg::new().variant(asked.variant());
    Ok(OpCall::new::<f32>(op, vec![Role::Updated(a), Role::Updated(b), Role::Result(vec![2])]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    Ok(vec![Rotg::new().variant(variant).lower_as(DType::F32, profile)?])
}
