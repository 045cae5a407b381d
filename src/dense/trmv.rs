use super::banded::{BandProduct, HALF, HALF_SHAPE, HalfMatrix, VARIANTS, half_builders};
use super::triangle::{TRANS, UNIT};
use crate::program::prelude::*;

/// Multiplies a triangular matrix and a vector: `y = op(A) x`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let a = gpu.upload(&[2.0f32, f32::NAN, 1.0, 4.0])?; // nothing above the diagonal is read
/// let (x, y) = (gpu.upload(&[1.0f32, 10.0])?, gpu.alloc::<f32>(2)?);
/// let plan = Trmv::new(2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [2.0, 41.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `a` is n x n and row-major; only its lower triangle is read, or the [`upper`](Self::upper) one, and with
/// [`unit`](Self::unit) not its diagonal. [`trans`](Self::trans) takes its transpose. As a [`banded`](Self::banded)
/// matrix it is BLAS's `tbmv`, as a [`packed`](Self::packed) triangle `tpmv`. `x` and `y` have n elements;
/// [`incx`](Self::incx) and [`incy`](Self::incy) are BLAS's increments. `y` must not overlap the others (BLAS
/// multiplies in place). n may be 0.
///
/// # Precision and determinism
/// Sums in f32, in trees: the bound is that of [`Gemv`](crate::Gemv). The same device gives the same bits in every run.
///
/// # Cost
/// `n^2` flop; the triangle is read once. One dispatch; two and scratch of 4 bytes for each part of a sum if n is small
/// or the band wide.
///
/// # Variants
/// `tiles`: tiles are read along their rows.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a leading dimension below the row length; both a band and
///   a packed triangle; an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand or the scratch above the largest binding.
/// - [`Unsupported`](ErrorKind::Unsupported): another element type than f32.
///
/// # Algorithm
/// `shaders/dense/band_product.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Trmv {
    pub(crate) half: HalfMatrix,
    pub(crate) trans: bool,
    pub(crate) unit: bool,
    increments: Increments,
    variant: String,
}

impl Trmv {
    /// Takes the side of the matrix, whose lower triangle is stored.
    pub fn new(n: usize) -> Self {
        let (increments, variant) = (Increments::default(), "auto".into());
        Self { half: HalfMatrix::new(n), trans: false, unit: false, increments, variant }
    }

    half_builders!(upper, trans, unit, banded, packed, lda);
    increments!(incx x, incy y);
    variants!(variant);

    fn lower_as(&self, _: DType, profile: &DeviceProfile) -> Result<Program> {
        let product = BandProduct::of_half(INFO.name, "dense/trmv", &self.half)?;
        let product = BandProduct { trans: self.trans, unit: self.unit, ..product };
        self.increments.lower(INFO.name, 1, profile, || product.lower(&self.variant, profile))
    }
}

operands! {
    impl[T: Element,] Trmv, T {
        fn record(a: T, x: T, y: T);
    }
}

lowered_as!(Trmv: f32);

pub(super) const INFO: Operation = Operation {
    name: "trmv",
    about: "y = op(A) x for a triangular matrix",
    inputs: &[Input::new("a", HALF_SHAPE), Input::new("x", "(n)")],
    outputs: &[("y", "(n)")],
    types: &[DType::F32],
    options: &[HALF[0], HALF[1], HALF[2], HALF[3], TRANS, UNIT, INCX, INCY],
    domains: &[("a", Domain::Finite), ("x", Domain::Finite)],
    make: Some(make),
    variants: Trmv::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[40, 40], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (half, a) = HalfMatrix::asked(asked)?;
    let x = asked.like("x", &[half.n])?;
    let (trans, unit) = (asked.settings().has(TRANS.name), asked.settings().has(UNIT.name));
    let op = Trmv { half, trans, unit, ..Trmv::new(half.n).variant(asked.variant()) };
    Ok(OpCall::new::<f32>(op, vec![Role::Given(a), Role::Given(x), Role::Result(vec![half.n])]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let of = |op: Trmv| op.variant(variant).lower_as(DType::F32, profile);
    let packed = Trmv::new(70).packed().unit();
    Ok(vec![
        of(Trmv::new(1000).trans())?,
        of(Trmv::new(70).banded(3).upper())?,
        of(packed.clone())?,
        of(packed.clone().trans())?,
        of(packed.clone().upper())?,
        of(packed.upper().trans())?,
    ])
}
