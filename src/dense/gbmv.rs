use super::banded::{BandMatrix, BandPacking, BandProduct, VARIANTS};
use super::product::options::{ALPHA, BETA};
use super::symv::asked_y;
use super::triangle::TRANS;
use crate::program::prelude::*;

/// Multiplies a band matrix and a vector: `y = alpha op(A) x + beta y`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// // (2 3 0; 1 2 3; 0 1 2): one diagonal below the main one and one above.
/// let a = gpu.upload(&[f32::NAN, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, f32::NAN])?;
/// let (x, y) = (gpu.upload(&[1.0f32, 10.0, 100.0])?, gpu.alloc::<f32>(3)?);
/// let plan = Gbmv::new(3, 3, 1, 1).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [32.0, 321.0, 210.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// A is m x n. Row i of `a` has the kl + ku + 1 elements of A from column i - kl to i + ku, as row-major CBLAS has
/// them; places outside of A are not read. Rows are [`lda`](Self::lda) apart, kl + ku + 1 by default. `x` has n
/// elements and `y` m, with [`trans`](Self::trans) the other way round; [`incx`](Self::incx) and [`incy`](Self::incy)
/// are BLAS's increments. `y` must not overlap the others. Any extent may be 0. With a `beta` of 0 (the default) `y`
/// is not read, with an `alpha` of 0 `a` and `x` are not.
///
/// # Precision and determinism
/// Sums in f32, in trees: the bound is that of [`Gemv`](crate::Gemv). The same device gives the same bits in every run.
///
/// # Cost
/// `2 m (kl + ku + 1)` flop; `a` is read once. One dispatch; two and scratch of 4 bytes for each part of a sum if there
/// are few rows in a wide band.
///
/// # Variants
/// `tiles`: tiles are read along their rows.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a leading dimension below kl + ku + 1; an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand or the scratch above the largest binding.
/// - [`Unsupported`](ErrorKind::Unsupported): another element type than f32.
///
/// # Algorithm
/// `shaders/dense/band_product.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gbmv {
    pub(crate) matrix: BandMatrix,
    pub(crate) trans: bool,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    increments: Increments,
    variant: String,
}

impl Gbmv {
    /// Takes the extents of A, and its diagonals below and above the main one. `alpha` is 1 and `beta` 0.
    pub fn new(m: usize, n: usize, kl: usize, ku: usize) -> Self {
        let matrix = BandMatrix { rows: m, cols: n, below: kl, above: ku, packing: BandPacking::Band, lda: None };
        let (increments, variant) = (Increments::default(), "auto".into());
        Self { matrix, trans: false, alpha: 1.0, beta: 0.0, increments, variant }
    }

    /// Multiplies by the transpose of A.
    #[must_use]
    pub fn trans(mut self) -> Self {
        self.trans = true;
        self
    }

    /// Sets the elements from one row of `a` to the next; kl + ku + 1 by default.
    #[must_use]
    pub fn lda(mut self, lda: usize) -> Self {
        self.matrix.lda = Some(lda);
        self
    }

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
        let Self { matrix, trans, alpha, beta, .. } = *self;
        let (op, shader) = (INFO.name, "dense/gbmv");
        let product = BandProduct { op, shader, matrix, symmetric: false, trans, unit: false, alpha, beta };
        self.increments.lower(op, 1, profile, || product.lower(&self.variant, profile))
    }
}

operands! {
    impl[T: Element,] Gbmv, T {
        fn record(a: T, x: T, y: T);
    }
}

lowered_as!(Gbmv: f32);

pub(super) const INFO: Operation = Operation {
    name: "gbmv",
    about: "y = alpha op(A) x + beta y for a band matrix with kl diagonals below the main one",
    inputs: &[Input::new("a", "(m, w)"), Input::new("x", "(n)"), Input::optional("y", "(m); (n) with trans")],
    outputs: &[("y", "(rows)")],
    types: &[DType::F32],
    options: &[Setting::number("kl", "0"), Setting::number("n", ""), TRANS, ALPHA, BETA, INCX, INCY],
    domains: &[("a", Domain::Finite), ("x", Domain::Finite), ("y", Domain::Finite)],
    make: Some(make),
    variants: Gbmv::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100, 5], options: &[("kl", "2")] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (a, [m, width]) = asked.array("a")?;
    asked.check_type(&a)?;
    let settings = asked.settings();
    let (kl, n) = (settings.number::<usize>("kl")?, settings.maybe::<usize>("n")?.unwrap_or(m));
    if kl >= width {
        return Err(err!(Shape, "gbmv: a is {a}; with --kl {kl} it needs more columns, one for each diagonal"));
    }
    let trans = settings.has(TRANS.name);
    let (alpha, beta) = (settings.number(ALPHA.name)?, settings.number::<f32>(BETA.name)?);
    let (terms, outputs) = if trans { (m, n) } else { (n, m) };
    let x = asked.like("x", &[terms])?;
    asked.set("rows", &[outputs]);
    let y = asked_y(asked, outputs, beta)?;
    let op = Gbmv::new(m, n, kl, width - 1 - kl).alpha(alpha).beta(beta).variant(asked.variant());
    let op = op.when(trans, Gbmv::trans);
    Ok(OpCall::new::<f32>(op, vec![Role::Given(a), Role::Given(x), y]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let of = |op: Gbmv| op.variant(variant).lower_as(DType::F32, profile);
    Ok(vec![of(Gbmv::new(70, 50, 3, 1))?, of(Gbmv::new(9, 4000, 2, 3000).trans())?])
}
