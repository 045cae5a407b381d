use super::product::{Product, WalkedKernel};
use super::rank_update::{OPTIONS, RankUpdate, VARIANTS, rank_update_builders};
use crate::program::prelude::*;

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
/// dispatch; no scratch for k up to 2^20 (2^13 on software drivers), above that 4 n^2 bytes.
///
/// # Variants
/// `tiles`: tiles outside of the triangle are skipped; with `full`, the product is that of `auto` of `Gemm`.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a leading dimension below the row length; an unknown
///   variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
/// - [`Unsupported`](ErrorKind::Unsupported): another element type than f32.
///
/// # Algorithm
/// That of `double` of [`Gemm`](crate::Gemm), in the same tiles; `shaders/dense/syrk.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Syrk {
    pub(crate) update: RankUpdate,
    variant: String,
}

/// A product of matrices in memory that skips tiles.
pub(super) const SKIPPING_TILES: WalkedKernel = WalkedKernel { kernel: ["dense/syrk", "syrk"], a: false, b: false };

impl Syrk {
    /// Takes the side of C and the number of products in each sum. `alpha` is 1, `beta` 0, and the lower triangle is
    /// written.
    pub fn new(n: usize, k: usize) -> Self {
        Self { update: RankUpdate::new(n, k), variant: "auto".into() }
    }

    /// Computes `A^T A`, with A stored as k x n.
    #[must_use]
    pub fn trans(mut self) -> Self {
        self.update.trans = true;
        self
    }

    rank_update_builders!();

    pub(crate) fn product(&self) -> Product {
        self.update.product(self.update.k, [self.update.lda; 2])
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let product = self.product();
        let multiplied = product.lower(dtype, profile)?;
        let [a, _, c] = &multiplied.operands[..] else { return Ok(program) };
        program.operands = vec![a.clone(), c.clone()];
        program.cost = self.update.cost(1, product.inner());
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
    options: OPTIONS,
    make: Some(make),
    variants: Syrk::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[16, 16], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (update, a) = RankUpdate::asked(asked)?;
    let c = update.asked_c(asked)?;
    let op = Syrk { update, variant: asked.variant().to_owned() };
    Ok(OpCall::new::<f32>(op, vec![Role::Given(a), Role::Updated(c)]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Syrk::new(20, 9).variant(variant);
    let ops = [op.clone(), op.clone().full(), op.upper().trans().beta(1.0)];
    ops.iter().map(|op| Op::<f32>::lower(op, profile)).collect()
}
