use super::banded::{BandProduct, HALF, HALF_SHAPE, HalfMatrix, VARIANTS, half_builders};
use super::product::options::{ALPHA, BETA};
use crate::program::prelude::*;

/// Multiplies a symmetric matrix, of which one triangle is stored, and a vector: `y = alpha A x + beta y`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let a = gpu.upload(&[2.0f32, f32::NAN, 1.0, 4.0])?; // nothing above the diagonal is read
/// let (x, y) = (gpu.upload(&[1.0f32, 10.0])?, gpu.alloc::<f32>(2)?);
/// let plan = Symv::new(2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [12.0, 41.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `a` is n x n and row-major; only its lower triangle is read, or the [`upper`](Self::upper) one. As a
/// [`banded`](Self::banded) matrix it is BLAS's `sbmv`, as a [`packed`](Self::packed) triangle `spmv`. `x` and `y` have
/// n elements; [`incx`](Self::incx) and [`incy`](Self::incy) are BLAS's increments. `y` must not overlap the others. n
/// may be 0. With a `beta` of 0 (the default) `y` is not read, with an `alpha` of 0 `a` and `x` are not.
///
/// # Precision and determinism
/// Sums in f32, in trees: the bound is that of [`Gemv`](crate::Gemv). The same device gives the same bits in every run.
///
/// # Cost
/// `2 n^2` flop. Elements beside the diagonal are read twice, once for each of their two places. One dispatch; two and
/// scratch of 4 bytes for each part of a sum if n is small or the band wide.
///
/// # Variants
/// `tiles`: tiles are read along their rows, whichever of the two places they stand for.
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
pub struct Symv {
    pub(crate) half: HalfMatrix,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    increments: Increments,
    variant: String,
}

impl Symv {
    /// Takes the side of the matrix. `alpha` is 1 and `beta` 0.
    pub fn new(n: usize) -> Self {
        let (increments, variant) = (Increments::default(), "auto".into());
        Self { half: HalfMatrix::new(n), alpha: 1.0, beta: 0.0, increments, variant }
    }

    half_builders!(upper, banded, packed, lda);

    /// Sets the factor of the product.
    #[must_use]
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    /// Sets the factor of the old contents of `y`.
    #[must_use]
    pub fn beta(mut self, beta: f32) -> Self {
        self.beta = beta;
        self
    }

    increments!(incx x, incy y);
    variants!(variant);

    fn lower_as(&self, _: DType, profile: &DeviceProfile) -> Result<Program> {
        let product = BandProduct::of_half(INFO.name, "dense/symv", &self.half)?;
        let product = BandProduct { symmetric: true, alpha: self.alpha, beta: self.beta, ..product };
        self.increments.lower(INFO.name, 1, profile, || product.lower(&self.variant, profile))
    }
}

operands! {
    impl[T: Element,] Symv, T {
        fn record(a: T, x: T, y: T);
    }
}

lowered_as!(Symv: f32);

pub(super) const INFO: Operation = Operation {
    name: "symv",
    about: "y = alpha A x + beta y for a symmetric matrix of which one triangle is stored",
    inputs: &[Input::new("a", HALF_SHAPE), Input::new("x", "(n)"), Input::optional("y", "(n)")],
    outputs: &[("y", "(n)")],
    types: &[DType::F32],
    options: &[HALF[0], HALF[1], HALF[2], HALF[3], ALPHA, BETA, INCX, INCY],
    domains: &[("a", Domain::Finite), ("x", Domain::Finite), ("y", Domain::Finite)],
    make: Some(make),
    variants: Symv::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[40, 40], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (half, a) = HalfMatrix::asked(asked)?;
    let x = asked.like("x", &[half.n])?;
    let settings = asked.settings();
    let (alpha, beta) = (settings.number(ALPHA.name)?, settings.number::<f32>(BETA.name)?);
    let y = asked_y(asked, half.n, beta)?;
    let op = Symv { half, alpha, beta, ..Symv::new(half.n).variant(asked.variant()) };
    Ok(OpCall::new::<f32>(op, vec![Role::Given(a), Role::Given(x), y]))
}

/// Reads `y`, which is optional if it is not read.
pub(super) fn asked_y(asked: &mut Asked<'_>, n: usize, beta: f32) -> Result<Role> {
    if asked.has_more() {
        return Ok(Role::Updated(asked.like("y", &[n])?));
    }
    if beta != 0.0 {
        return Err(err!(InvalidArgument, "{}: --beta {beta} needs y, the third input", asked.name()));
    }
    Ok(Role::Result(vec![n]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let of = |op: Symv| op.variant(variant).lower_as(DType::F32, profile);
    let small = Symv::new(5).beta(2.0);
    Ok(vec![
        of(Symv::new(1000))?,
        of(small.clone().upper())?,
        of(small.clone().packed())?,
        of(small.upper().packed())?,
        of(Symv::new(70).banded(2).alpha(0.0))?,
    ])
}
