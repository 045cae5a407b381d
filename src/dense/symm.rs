use super::product::Product;
use super::triangle::{LOWER, SIDE, Triangle, UPPER, triangle_builders};
use crate::program::prelude::*;

/// Multiplies by a symmetric matrix of which one triangle is stored: `C = alpha A B + beta C`, or `alpha B A + beta C`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let a = gpu.upload(&[2.0f32, f32::NAN, 1.0, 4.0])?; // nothing above the diagonal is read
/// let (b, c) = (gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?, gpu.alloc::<f32>(4)?);
/// let plan = Symm::new(2, 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b, &c)?;
/// rec.submit()?;
/// assert_eq!(c.read()?, [5.0, 8.0, 13.0, 18.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `b` and `c` are m x n and row-major; `a` is square, with a side of m, or of n on the [`right`](Self::right). Only
/// its lower triangle is read, or the [`upper`](Self::upper) one. [`lda`](Self::lda), [`ldb`](Self::ldb) and
/// [`ldc`](Self::ldc) count the elements from one row to the next; elements of `c` between its rows are not changed.
/// `c` must be another wgpu buffer than `a` and `b`. Any extent may be 0. With `beta` = 0 (the default) `c` is not
/// read, with `alpha` = 0 `a` and `b` are not. One column: [`Symv`](crate::Symv).
///
/// # Precision and determinism
/// As [`Gemm`](crate::Gemm) in f32. The same device gives the same bits in every run.
///
/// # Cost
/// `2 m^2 n` flop (`2 m n^2` on the right), after a pass that writes the whole of A to scratch: 4 bytes for each of its
/// elements, read once and written once. Two dispatches or a few more. If B is narrow that pass takes as long as the
/// product; a matrix that is used again is better stored whole, for [`Gemm`](crate::Gemm) or [`Gemv`](crate::Gemv).
///
/// # Variants
/// `whole`: A is made whole first.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a leading dimension below the row length; an unknown
///   variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand or the scratch above the largest binding.
/// - [`Unsupported`](ErrorKind::Unsupported): another element type than f32.
///
/// # Algorithm
/// `shaders/dense/symm.wgsl`, then the product as [`Gemm`](crate::Gemm) chooses it.
#[derive(Debug, Clone, PartialEq)]
pub struct Symm {
    pub(crate) triangle: Triangle,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("whole", "the symmetric matrix is made whole first")];

const WORKGROUP_SIZE: u64 = 256;

kernel_params! { struct SymmParams { n: u32, lda: u32, upper: u32 } }

impl Symm {
    /// Takes the extents of B. `alpha` is 1, `beta` 0, A lower and on the left.
    pub fn new(m: usize, n: usize) -> Self {
        Self { triangle: Triangle::new(m, n), alpha: 1.0, beta: 0.0, variant: "auto".into() }
    }

    triangle_builders!(right, upper, lda, ldb, ldc);

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

    variants!(variant);

    pub(crate) fn product(&self) -> Product {
        let Self { triangle: Triangle { right, m, n, ldb, ldc, .. }, alpha, beta, .. } = *self;
        let (lda, of_b) = if right { (ldb, None) } else { (None, ldb) };
        Product { alpha, beta, lda, ldb: of_b, ldc, ..Product::new(m, n, self.triangle.side()) }
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let triangle = self.triangle;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        program.operands = triangle.operands(INFO.name, Some(Access::ReadWrite), profile)?;
        let product = self.product();
        let (n, others) = (triangle.side(), triangle.others());
        let multiplied = product.lower(dtype, profile)?;
        program.cost = Cost {
            bytes: multiplied.cost.bytes
                - if product.has_product() { 2.0 * (n as f64) * (n as f64 - 1.0) } else { 0.0 },
            ..multiplied.cost
        };
        let whole = if product.has_product() && others > 0 {
            let elements = n as u64 * n as u64;
            let advice = "take blocks in separate calls";
            profile.check_scratch(INFO.name, format_args!("{n} x {n} elements"), 4 * elements, advice)?;
            let whole = program.scratch(4 * elements);
            let kernel = program.kernel(Kernel::of_file("dense/symm", Spec::new()));
            let params = SymmParams { n: n as u32, lda: triangle.layout_a().ld as u32, upper: triangle.upper.into() };
            let bindings = vec![Binding::operand(0, &program.operands), whole];
            program.dispatch(kernel, &params, bindings, Grid::fold(elements.div_ceil(WORKGROUP_SIZE)));
            whole.resource
        } else {
            Resource::Operand(0)
        };
        let [b, c] = [1, 2].map(Resource::Operand);
        program.append(multiplied, &if triangle.right { [b, whole, c] } else { [whole, b, c] });
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Symm, T {
        fn record(a: T, b: T, c: T);
    }
}

lowered_as!(Symm: f32);

pub(super) const INFO: Operation = Operation {
    name: "symm",
    about: "multiplies by a symmetric matrix of which one triangle is stored",
    inputs: &[
        Input::new("a", "(m, m); (n, n) with side right"),
        Input::new("b", "(m, n)"),
        Input::optional("c", "(m, n)"),
    ],
    outputs: &[("c", "(m, n)")],
    types: &[DType::F32],
    options: &[SIDE, LOWER, UPPER, Setting::number("alpha", "1"), Setting::number("beta", "0")],
    make: Some(make),
    variants: Symm::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[16, 16], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (triangle, [a, b]) = Triangle::asked(asked)?;
    let settings = asked.settings();
    let op = Symm {
        triangle,
        alpha: settings.number("alpha")?,
        beta: settings.number("beta")?,
        variant: asked.variant().to_owned(),
    };
    let shape = [triangle.m, triangle.n];
    let c = if asked.has_more() {
        Role::Updated(asked.like("c", &shape)?)
    } else if op.beta != 0.0 {
        let (name, beta) = (asked.name(), op.beta);
        return Err(err!(InvalidArgument, "{name}: --beta {beta} needs c, the third input"));
    } else {
        Role::Result(shape.to_vec())
    };
    Ok(OpCall::new::<f32>(op, vec![Role::Given(a), Role::Given(b), c]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let of = |op: Symm| Op::<f32>::lower(&op.variant(variant), profile);
    Ok(vec![of(Symm::new(5, 7))?, of(Symm::new(7, 5).right().upper().beta(1.0))?])
}
