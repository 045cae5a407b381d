use super::banded::{HalfMatrix, half_builders};
use super::syr::{A, OPTIONS, VARIANTS, asked_matrix, update};
use crate::program::prelude::*;

/// Adds the outer products of two vectors to a symmetric matrix of which one triangle is stored, in place:
/// `A = alpha (x y^T + y x^T) + A`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[3.0f32, 4.0])?);
/// let a = gpu.upload(&[0.0f32, 7.0, 0.0, 0.0])?;
/// let plan = Syr2::new(2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y, &a)?;
/// rec.submit()?;
/// assert_eq!(a.read()?, [6.0, 7.0, 10.0, 16.0]); // the upper triangle stays
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` and `y` have n elements and may be the same. `a` is as [`Syr`](crate::Syr) has it; as a
/// [`packed`](Self::packed) triangle it is BLAS's `spr2`. [`incx`](Self::incx) and [`incy`](Self::incy) are BLAS's
/// increments. n may be 0. With an `alpha` of 0 nothing is read.
///
/// # Precision and determinism
/// Five roundings in f32, or fewer if the device fuses products with sums. The same device gives the same bits in every
/// run.
///
/// # Cost
/// `2.5 n^2` flop; the triangle is read and written. One dispatch, no scratch.
///
/// # Variants
/// `elements`: a thread updates an element.
///
/// # Errors
/// As [`Syr`](crate::Syr).
///
/// # Algorithm
/// `shaders/dense/syr.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Syr2 {
    pub(crate) half: HalfMatrix,
    pub(crate) alpha: f32,
    increments: Increments,
    variant: String,
}

impl Syr2 {
    /// Takes the side of the matrix, whose lower triangle is stored. `alpha` is 1.
    pub fn new(n: usize) -> Self {
        let (increments, variant) = (Increments::default(), "auto".into());
        Self { half: HalfMatrix::new(n), alpha: 1.0, increments, variant }
    }

    half_builders!(upper, packed, lda);

    /// Sets the factor of the products.
    #[must_use]
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    increments!(incx x, incy y);
    variants!(variant);

    fn lower_as(&self, _: DType, profile: &DeviceProfile) -> Result<Program> {
        let unit = || update(INFO.name, &self.half, self.alpha, 2, &self.variant, profile);
        self.increments.lower(INFO.name, 1, profile, unit)
    }
}

operands! {
    impl[T: Element,] Syr2, T {
        fn record(x: T, y: T, a: T);
    }
}

lowered_as!(Syr2: f32);

pub(super) const INFO: Operation = Operation {
    name: "syr2",
    about: "one triangle of a symmetric matrix and alpha times the outer products of two vectors",
    inputs: &[Input::new("x", "(n)"), Input::new("y", "(n)"), A],
    outputs: &[("a", "(n, n); (e) with packed")],
    types: &[DType::F32],
    options: &[OPTIONS[0], OPTIONS[1], OPTIONS[2], OPTIONS[3], INCX, INCY],
    domains: &[("x", Domain::Finite), ("y", Domain::Finite), ("a", Domain::Finite)],
    make: Some(make),
    variants: Syr2::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[40], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, [n]) = asked.array("x")?;
    let y = asked.like("y", &[n])?;
    let (half, alpha, a) = asked_matrix(asked, n)?;
    let op = Syr2 { half, alpha, ..Syr2::new(n).variant(asked.variant()) };
    Ok(OpCall::new::<f32>(op, vec![Role::Given(x), Role::Given(y), Role::Updated(a)]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let of = |op: Syr2| op.variant(variant).lower_as(DType::F32, profile);
    let packed = Syr2::new(20).packed();
    Ok(vec![of(Syr2::new(20))?, of(packed.clone())?, of(packed.upper())?])
}
