use super::banded::{BandProduct, HalfMatrix, PACKED, half_builders};
use super::triangle::{LOWER, UPPER, asked_upper};
use crate::program::prelude::*;

/// Adds the outer product of a vector with itself to a symmetric matrix of which one triangle is stored, in place:
/// `A = alpha x x^T + A`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, a) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[0.0f32, 7.0, 0.0, 1.0])?);
/// let plan = Syr::new(2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &a)?;
/// rec.submit()?;
/// assert_eq!(a.read()?, [1.0, 7.0, 2.0, 5.0]); // the upper triangle stays
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` has n elements, `a` is n x n and row-major. Only its lower triangle is read and written, or the
/// [`upper`](Self::upper) one. As a [`packed`](Self::packed) triangle it is BLAS's `spr`. [`incx`](Self::incx) is
/// BLAS's increment. `a` must not overlap `x`. n may be 0. With an `alpha` of 0 nothing is read.
///
/// # Precision and determinism
/// Three roundings in f32, or two if the device fuses the last product with the sum. The same device gives the same
/// bits in every run.
///
/// # Cost
/// `1.5 n^2` flop; the triangle is read and written. One dispatch, no scratch.
///
/// # Variants
/// `elements`: a thread updates an element.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a leading dimension below n, or of a packed triangle; an
///   unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding; an n above 65,535.
/// - [`Unsupported`](ErrorKind::Unsupported): another element type than f32.
///
/// # Algorithm
/// `shaders/dense/syr.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Syr {
    pub(crate) half: HalfMatrix,
    pub(crate) alpha: f32,
    increments: Increments,
    variant: String,
}

pub(super) const VARIANTS: &[Variant] = &[Variant::portable("elements", "a thread updates an element")];

impl Syr {
    /// Takes the side of the matrix, whose lower triangle is stored. `alpha` is 1.
    pub fn new(n: usize) -> Self {
        let (increments, variant) = (Increments::default(), "auto".into());
        Self { half: HalfMatrix::new(n), alpha: 1.0, increments, variant }
    }

    half_builders!(upper, packed, lda);

    /// Sets the factor of the product.
    #[must_use]
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    increments!(incx x);
    variants!(variant);

    fn lower_as(&self, _: DType, profile: &DeviceProfile) -> Result<Program> {
        let unit = || update(INFO.name, &self.half, self.alpha, 1, &self.variant, profile);
        self.increments.lower(INFO.name, 1, profile, unit)
    }
}

pub(super) fn update(
    op: &'static str, half: &HalfMatrix, alpha: f32, vectors: usize, variant: &str, profile: &DeviceProfile,
) -> Result<Program> {
    let mut program = Program::of_only_variant(op, variant, VARIANTS, profile)?;
    let product = BandProduct { alpha, ..BandProduct::of_half(op, "dense/syr", half)? };
    let mut operands = product.operands(true, profile)?;
    let stored = operands[0].len as f64;
    // The vectors come before the matrix.
    operands.rotate_left(1);
    operands[0].access = Access::Read;
    operands[1].access = Access::ReadWrite;
    if vectors == 2 {
        let y = Operand { name: "y", ..operands[0].clone() };
        operands.insert(1, y);
    }
    program.operands = operands;
    let n = half.n;
    program.cost = Cost { flop: (2 * vectors + 1) as f64 * stored, bytes: 4.0 * ((vectors * n) as f64 + 2.0 * stored) };
    let threads = u64::from(index_u32(op, "the number of elements", elements(op, "a", &[n, n])?)?);
    if n > 0 && alpha != 0.0 {
        let (spec, params) = product.parts_of_kernel();
        let spec = spec.flag("UPDATES", true).flag("SECOND", vectors == 2);
        let spec = spec.constant("MATRIX_BINDING", vectors as u32 + 1);
        let kernel = program.kernel(Kernel::of_file("dense/syr", spec));
        let bindings = (0..=vectors).map(|i| Binding::operand(i, &program.operands)).collect();
        program.dispatch(kernel, &params, bindings, Grid::fold(threads.div_ceil(256)));
    }
    Ok(program)
}

operands! {
    impl[T: Element,] Syr, T {
        fn record(x: T, a: T);
    }
}

lowered_as!(Syr: f32);

pub(super) const OPTIONS: [Setting; 4] = [LOWER, UPPER, PACKED, Setting::number("alpha", "1")];
pub(super) const A: Input = Input::optional("a", "(n, n); (e) with packed");

pub(super) const INFO: Operation = Operation {
    name: "syr",
    about: "one triangle of a symmetric matrix and alpha times the outer product of a vector with itself",
    inputs: &[Input::new("x", "(n)"), A],
    outputs: &[("a", "(n, n); (e) with packed")],
    types: &[DType::F32],
    options: &[OPTIONS[0], OPTIONS[1], OPTIONS[2], OPTIONS[3], INCX],
    domains: &[("x", Domain::Finite), ("a", Domain::Finite)],
    make: Some(make),
    variants: Syr::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[40], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, [n]) = asked.array("x")?;
    let (half, alpha, a) = asked_matrix(asked, n)?;
    let op = Syr { half, alpha, ..Syr::new(n).variant(asked.variant()) };
    Ok(OpCall::new::<f32>(op, vec![Role::Given(x), Role::Updated(a)]))
}

/// Reads the options and the matrix, the last input, or takes zeros.
pub(super) fn asked_matrix(asked: &mut Asked<'_>, n: usize) -> Result<(HalfMatrix, f32, HostArray)> {
    let settings = asked.settings();
    let (packed, upper) = (settings.has(PACKED.name), asked_upper(asked.name(), settings)?);
    let half = HalfMatrix { upper, packed, ..HalfMatrix::new(n) };
    let len = elements(asked.name(), "a", &[n, n + 1])? / 2;
    let shape = if packed { vec![len] } else { vec![n; 2] };
    asked.set("e", &[len]);
    let alpha = settings.number("alpha")?;
    let a = if asked.has_more() { asked.like("a", &shape)? } else { HostArray::zeros(&shape, DType::F32)? };
    Ok((half, alpha, a))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let of = |op: Syr| op.variant(variant).lower_as(DType::F32, profile);
    let packed = Syr::new(20).packed();
    Ok(vec![of(Syr::new(20))?, of(packed.clone())?, of(packed.upper())?])
}
