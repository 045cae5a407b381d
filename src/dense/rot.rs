use crate::program::prelude::*;

/// Rotates pairs of elements of two vectors, in place: `x[i] = c x[i] + s y[i]`, `y[i] = c y[i] - s x[i]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[10.0f32, 20.0])?);
/// let plan = Rot::new(2, 0.0, 1.0).plan::<f32>(&gpu)?; // a quarter turn
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!((x.read()?, y.read()?), (vec![10.0, 20.0], vec![-1.0, -2.0]));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// [`modified`](Self::modified) is BLAS's `rotm`. [`with_rotation`](Self::with_rotation) reads c and s from the device,
/// where [`Rotg`](crate::Rotg) writes them, and [`with_param`](Self::with_param) the matrix of [`Rotmg`](crate::Rotmg).
///
/// # Shapes
/// `x` and `y` have `n` elements each; `n` may be 0. They must not overlap. [`incx`](Self::incx) and
/// [`incy`](Self::incy) are BLAS's increments. The operand `rotation` has two elements of f32, c and s, and
/// `param` five.
///
/// # Types
/// f32 and f16.
///
/// # Precision and determinism
/// Two products and a sum in f32, which the device may fuse; f16 is rounded at the end. The same device gives the same
/// bits in every run.
///
/// # Cost
/// `6 n` flop; both vectors are read and written. One dispatch, no scratch.
///
/// # Variants
/// `words`: a thread makes a word of 32 bits of each vector.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): another element type.
/// - [`TooLarge`](ErrorKind::TooLarge): a vector above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/dense/rot.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rot {
    n: usize,
    matrix: [f32; 4],
    given: GivenRotation,
    increments: Increments,
    variant: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenRotation {
    Nothing,
    Rotation,
    Param,
}

const VARIANTS: &[Variant] = &[Variant::portable("words", "a thread makes a word of 32 bits of each vector")];

kernel_params! { struct RotParams { n: u32, h11: f32, h12: f32, h21: f32, h22: f32 } }

impl Rot {
    /// Rotates by the angle with the cosine `c` and the sine `s`.
    pub fn new(n: usize, c: f32, s: f32) -> Self {
        let increments = Increments::default();
        Self { n, matrix: [c, s, -s, c], given: GivenRotation::Nothing, increments, variant: "auto".into() }
    }

    /// Multiplies by a matrix instead, `x[i] = h11 x[i] + h12 y[i]`, `y[i] = h21 x[i] + h22 y[i]`, given as BLAS's
    /// `rotm` takes it: a flag, h11, h21, h12 and h22. A flag of -1 takes all four; 0 takes 1 for h11 and h22; 1 takes
    /// 1 for h12 and -1 for h21; -2 changes nothing. Other flags count as 1 above 0, else as -1.
    pub fn modified(n: usize, [flag, h11, h21, h12, h22]: [f32; 5]) -> Self {
        let matrix = match flag {
            -2.0 => [1.0, 0.0, 0.0, 1.0],
            0.0 => [1.0, h12, h21, 1.0],
            flag if flag > 0.0 => [h11, 1.0, -1.0, h22],
            _ => [h11, h12, h21, h22],
        };
        Self { matrix, ..Self::new(n, 1.0, 0.0) }
    }

    /// Reads c and s from an operand `rotation` of two f32, `plan.with_rotation(&rotation)`, instead of those given.
    #[must_use]
    pub fn with_rotation(mut self) -> Self {
        self.given = GivenRotation::Rotation;
        self
    }

    /// Reads what [`modified`](Self::modified) takes from an operand `param` of five f32, `plan.with_param(&param)`.
    #[must_use]
    pub fn with_param(mut self) -> Self {
        self.given = GivenRotation::Param;
        self
    }

    increments!(incx x, incy y);
    variants!(variant);

    /// The matrix by rows, unless it comes from the device.
    pub(crate) fn matrix(&self) -> [f32; 4] {
        self.matrix
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        self.increments.lower(INFO.name, 1, profile, || self.lower_unit(dtype, profile))
    }

    fn lower_unit(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (name, n) = (INFO.name, self.n);
        let mut program = Program::of_only_variant(name, &self.variant, VARIANTS, profile)?;
        let operand = |name, len, access| Operand { name, dtype, len, access };
        program.operands = vec![operand("x", n, Access::ReadWrite), operand("y", n, Access::ReadWrite)];
        let of_device = |name, len| Operand { dtype: DType::F32, ..operand(name, len, Access::Read) };
        match self.given {
            GivenRotation::Nothing => {}
            GivenRotation::Rotation => program.operands.push(of_device("rotation", 2)),
            GivenRotation::Param => program.operands.push(of_device("param", 5)),
        }
        profile.check_bindings(name, &program.operands, "split the vectors")?;
        program.cost = Cost { flop: 6.0 * n as f64, bytes: (4 * n * dtype.size()) as f64 };
        // The identity is exact for NaN and infinities, too.
        if n > 0 && (self.given != GivenRotation::Nothing || self.matrix != [1.0, 0.0, 0.0, 1.0]) {
            let spec = Spec::new().slot("element", element_fragment(dtype));
            let spec = spec.flag("GIVEN", self.given == GivenRotation::Rotation);
            let spec = spec.flag("PARAM", self.given == GivenRotation::Param);
            let kernel = program.kernel(Kernel::of_file("dense/rot", spec));
            let bindings = (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands));
            let [h11, h12, h21, h22] = self.matrix;
            let params = RotParams { n: n as u32, h11, h12, h21, h22 };
            let (bindings, words) = (bindings.collect(), (n as u64 * dtype.size() as u64).div_ceil(4));
            program.dispatch(kernel, &params, bindings, Grid::fold(words.div_ceil(256)));
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Rot, T {
        fn record(x: T, y: T);
        /// Takes the cosine and the sine, two elements.
        optional with_rotation(rotation: f32);
        /// Takes the flag and the matrix, five elements.
        optional with_param(param: f32);
    }
}

lowered_as!(Rot: f32, f16);

const PARAM: Setting = Setting::text("param", "FLAG,H11,H21,H12,H22", "");

pub(super) const INFO: Operation = Operation {
    name: "rot",
    about: "rotates two vectors: x = c x + s y, y = c y - s x; with param BLAS's rotm",
    inputs: &[Input::new("x", "(n)"), Input::new("y", "(n)")],
    outputs: &[("x", "(n)"), ("y", "(n)")],
    types: &[DType::F32, DType::F16],
    options: &[
        Setting::number("c", "0.6"),
        Setting::number("s", "0.8"),
        PARAM,
        Setting::array("rotation", "(2)"),
        Setting::array("device-param", "(5)"),
        INCX,
        INCY,
    ],
    domains: &[("x", Domain::Finite), ("y", Domain::Finite)],
    make: Some(make),
    variants: Rot::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[1000], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, [n]) = asked.array("x")?;
    asked.check_type(&x)?;
    let y = asked.like("y", &[n])?;
    let (dtype, settings) = (x.dtype(), asked.settings());
    let op = match settings.given_numbers::<f32, 5>(&PARAM)? {
        Some(param) => Rot::modified(n, param),
        None => Rot::new(n, settings.number("c")?, settings.number("s")?),
    };
    let rotation = asked.named_of("rotation", &[2], DType::F32)?;
    let param = asked.named_of("device-param", &[5], DType::F32)?;
    if [rotation.is_some(), param.is_some(), settings.has(PARAM.name)].into_iter().filter(|on| *on).count() > 1 {
        return Err(err!(InvalidArgument, "rot: give only one of --param, --rotation and --device-param"));
    }
    let op = op.variant(asked.variant()).when(rotation.is_some(), Rot::with_rotation);
    let op = op.when(param.is_some(), Rot::with_param);
    let given = rotation.or(param).map(Role::Given);
    let operands = [Role::Updated(x), Role::Updated(y)].into_iter().chain(given).collect();
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let of = |op: Rot, dtype| op.variant(variant).lower_as(dtype, profile);
    let given = Rot::new(9, 1.0, 0.0).with_rotation();
    let param = Rot::new(9, 1.0, 0.0).with_param();
    Ok(vec![of(Rot::new(1001, 0.6, 0.8), DType::F32)?, of(given, DType::F16)?, of(param, DType::F32)?])
}
