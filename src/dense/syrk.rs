//! BLAS's syrk: the product of a matrix and its transpose.

use super::product::{Product, StoredTriangle, WalkedKernel};
use super::triangle::{LOWER, TRANS, UPPER, asked_upper};
use crate::array::HostArray;
use crate::element::{DType, Element};
use crate::error::Result;
use crate::program::{
    Asked, Comparison, Cost, DeviceProfile, Example, Input, Op, OpCall, Operation, Program, Resource, Role,
    Setting, Variant, lowered_as, operands,
};

/// Multiplies a matrix by its transpose, and updates one triangle of a symmetric matrix: `C = alpha A A^T + beta C`, or
/// `alpha A^T A + beta C`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // 2 x 2
/// let c = gpu.upload(&[0.0f32, 7.0, 0.0, 0.0])?;
/// let plan = Syrk::new(2, 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &c)?;
/// rec.submit()?;
/// assert_eq!(c.read()?, [5.0, 7.0, 11.0, 25.0]); // the upper triangle stays
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `a` is n x k and row-major, or k x n with [`trans`](Self::trans); `c` is n x n. The lower triangle of `c` is
/// written, or the [`upper`](Self::upper) one, with the diagonal; the rest is neither read nor written.
/// [`full`](Self::full) writes all of it. With `beta` = 0 (the default) nothing of `c` is read. [`lda`](Self::lda) and
/// [`ldc`](Self::ldc) count the elements from one row to the next. `a` must be another wgpu buffer than `c`. Any extent
/// may be 0.
///
/// # Precision and determinism
/// As [`Gemm`](crate::Gemm) in f32. The same device gives the same bits in every run.
///
/// # Cost
/// `n (n + 1) k` flop: half of the tiles of a product, and whole tiles on the diagonal; `2 n^2 k` with `full`. One
/// dispatch; no scratch for k up to 2^20 (2^13 on processors), above that 4 n^2 bytes.
///
/// # Variants
/// `tiles`: tiles outside of the triangle are skipped; with `full`, the product is that of `auto` of `Gemm`.
///
/// # Errors
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): a leading dimension below the row length; an unknown
///   variant.
/// - [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest binding.
/// - [`Unsupported`](crate::ErrorKind::Unsupported): another element type than f32.
///
/// # Algorithm
/// That of `double` of [`Gemm`](crate::Gemm), in the same tiles; `shaders/dense/syrk.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Syrk {
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) trans: bool,
    pub(crate) upper: bool,
    pub(crate) full: bool,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    lda: Option<usize>,
    ldc: Option<usize>,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("tiles", "tiles of C outside of the triangle are skipped")];

/// A product of matrices in memory that skips tiles.
pub(super) const KERNEL: WalkedKernel = WalkedKernel { kernel: ["dense/syrk", "syrk"], a: false, b: false };

impl Syrk {
    /// Takes the side of C and the number of products in each sum. `alpha` is 1, `beta` 0, and the lower triangle is
    /// written.
    pub fn new(n: usize, k: usize) -> Self {
        Self {
            n,
            k,
            trans: false,
            upper: false,
            full: false,
            alpha: 1.0,
            beta: 0.0,
            lda: None,
            ldc: None,
            variant: "auto".into(),
        }
    }

    /// Computes `A^T A`, with A stored as k x n.
    #[must_use]
    pub fn trans(mut self) -> Self {
        self.trans = true;
        self
    }

    /// Writes the upper triangle; the lower one by default.
    #[must_use]
    pub fn upper(mut self) -> Self {
        self.upper = true;
        self
    }

    /// Writes both triangles, by the kernels of [`Gemm`](crate::Gemm).
    #[must_use]
    pub fn full(mut self) -> Self {
        self.full = true;
        self
    }

    /// Sets the factor of the product.
    #[must_use]
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    /// Sets the factor of the old contents of C.
    #[must_use]
    pub fn beta(mut self, beta: f32) -> Self {
        self.beta = beta;
        self
    }

    /// Sets the elements from one stored row of `a` to the next; the row length by default.
    #[must_use]
    pub fn lda(mut self, lda: usize) -> Self {
        self.lda = Some(lda);
        self
    }

    /// Sets the elements from one row of `c` to the next; n by default.
    #[must_use]
    pub fn ldc(mut self, ldc: usize) -> Self {
        self.ldc = Some(ldc);
        self
    }

    crate::program::variants!(variant);

    /// The product, of which one triangle is computed, or all.
    pub(crate) fn product(&self) -> Product {
        let product = Product {
            alpha: self.alpha,
            beta: self.beta,
            trans_a: self.trans,
            trans_b: !self.trans,
            lda: self.lda,
            ldb: self.lda,
            ldc: self.ldc,
            ..Product::new(self.n, self.n, self.k)
        };
        if self.full {
            return product;
        }
        let triangle = if self.upper { StoredTriangle::Upper } else { StoredTriangle::Lower };
        Product { triangle: Some(triangle), kernel: Some(KERNEL), variant: "double".into(), ..product }
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let product = self.product();
        let multiplied = product.lower(dtype, profile)?;
        let [a, _, c] = &multiplied.operands[..] else { return Ok(program) };
        program.operands = vec![a.clone(), c.clone()];
        let [n, k] = [self.n, product.inner()].map(|x| x as f64);
        let written = if self.full { n * n } else { n * (n + 1.0) / 2.0 };
        let passes = if self.beta == 0.0 { 1.0 } else { 2.0 };
        program.cost = Cost { flop: 2.0 * written * k, bytes: 4.0 * (n * k + passes * written) };
        program.append(multiplied, &[0, 0, 1].map(Resource::Operand));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Syrk, T {
        fn record(a: T, c: T);
    }
}

lowered_as!(Syrk: f32);

pub(super) const INFO: Operation = Operation {
    name: "syrk",
    about: "C = alpha A A^T + beta C, or one triangle of it",
    inputs: &[Input::new("a", "(n, k); (k, n) with trans"), Input::optional("c", "(n, n)")],
    outputs: &[("c", "(n, n)")],
    types: &[DType::F32],
    options: &[Setting::number("alpha", "1"), Setting::number("beta", "0"), LOWER, UPPER, TRANS],
    make: Some(make),
    variants: Syrk::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[16, 16], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (a, [rows, columns]) = asked.array("a")?;
    asked.check_type(&a)?;
    let settings = asked.settings();
    let trans = settings.has(TRANS.name);
    let [n, k] = if trans { [columns, rows] } else { [rows, columns] };
    let c = if asked.has_more() { asked.like("c", &[n, n])? } else { HostArray::zeros(&[n, n], DType::F32)? };
    let upper = asked_upper(asked.name(), settings)?;
    let op = Syrk {
        trans,
        upper,
        full: !upper && !settings.has(LOWER.name),
        alpha: settings.number("alpha")?,
        beta: settings.number("beta")?,
        variant: asked.variant().to_owned(),
        ..Syrk::new(n, k)
    };
    Ok(OpCall::new::<f32>(op, vec![Role::Given(a), Role::Updated(c)]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Syrk::new(20, 9).variant(variant);
    let ops = [op.clone(), op.clone().full(), op.upper().trans().beta(1.0)];
    ops.iter().map(|op| Op::<f32>::lower(op, profile)).collect()
}
