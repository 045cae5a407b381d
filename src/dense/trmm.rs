use super::product::Product;
use super::triangle::{BLOCK, LOWER, SIDE, TRANS, Triangle, UNIT, UPPER, triangle_builders};
use crate::program::prelude::*;

/// Multiplies by a triangular matrix: `C = alpha op(A) B`, or `alpha B op(A)`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let a = gpu.upload(&[2.0f32, f32::NAN, 1.0, 4.0])?; // nothing above the diagonal is read
/// let (b, c) = (gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?, gpu.alloc::<f32>(4)?);
/// let plan = Trmm::new(2, 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b, &c)?;
/// rec.submit()?;
/// assert_eq!(c.read()?, [2.0, 4.0, 13.0, 18.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `b` and `c` are m x n and row-major; `a` is square, with a side of m, or of n on the [`right`](Self::right). Only
/// its lower triangle is read, or the [`upper`](Self::upper) one, and with [`unit`](Self::unit) not its diagonal.
/// [`trans`](Self::trans) takes its transpose. [`lda`](Self::lda), [`ldb`](Self::ldb) and [`ldc`](Self::ldc) count the
/// elements from one row to the next; elements of `c` between its rows are not changed. `c` must be another wgpu buffer
/// than `a` and `b` (BLAS multiplies in place). Any extent may be 0. With `alpha` = 0, C is 0 and nothing is read. One
/// column: [`Trmv`](crate::Trmv).
///
/// # Precision and determinism
/// As [`Gemm`](crate::Gemm) in f32: [`reference::trmm_bound`](crate::reference::trmm_bound). The same device gives the
/// same bits in every run.
///
/// # Cost
/// `m^2 n` flop (`m n^2` on the right): half of a product. One dispatch for the diagonal, and one or more for each 64
/// rows of A after the first. No scratch, but for slices of k as `Gemm` takes them.
///
/// # Variants
/// `blocked`: halves of A, recursively, down to blocks of 64.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a leading dimension below the row length; an unknown
///   variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
/// - [`Unsupported`](ErrorKind::Unsupported): another element type than f32.
///
/// # Algorithm
/// Blocks of 64 rows on the diagonal in `shaders/dense/trmm.wgsl`; what lies beside them by matrix products, as
/// [`Trsm`](crate::Trsm) has them.
#[derive(Debug, Clone, PartialEq)]
pub struct Trmm {
    pub(crate) triangle: Triangle,
    pub(crate) alpha: f32,
    variant: String,
}

const VARIANTS: &[Variant] =
    &[Variant::portable("blocked", "blocks of the diagonal element by element, all else by matrix products")];

const WORKGROUP_SIZE: u64 = 256;

kernel_params! {
    struct TrmmParams {
        n: u32, others: u32, a_row: u32, a_column: u32, b_row: u32, b_other: u32, c_row: u32, c_other: u32,
        right: u32, upper: u32, unit: u32, alpha: f32,
    }
}

impl Trmm {
    /// Takes the extents of B. `alpha` is 1, A lower and on the left.
    pub fn new(m: usize, n: usize) -> Self {
        Self { triangle: Triangle::new(m, n), alpha: 1.0, variant: "auto".into() }
    }

    triangle_builders!(right, upper, trans, unit, lda, ldb, ldc);

    /// Sets the factor of the product.
    #[must_use]
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    variants!(variant);

    fn lower_as(&self, _: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { triangle, alpha, .. } = *self;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        program.operands = triangle.operands(INFO.name, Some(Access::ReadWrite), profile)?;
        let (n, others) = (triangle.side(), triangle.others());
        let [a, b] = [(n as f64) * (n as f64 + 1.0) / 2.0, (n as f64) * (others as f64)];
        program.cost = Cost { flop: b * n as f64, bytes: 4.0 * (a + 2.0 * b) };
        if n == 0 || others == 0 {
            return Ok(program);
        }
        if alpha == 0.0 {
            let zero = Product { ldc: triangle.ldc, ..Product::new(triangle.m, triangle.n, 0) };
            program.append(zero.lower(DType::F32, profile)?, &[0, 1, 2].map(Resource::Operand));
            return Ok(program);
        }
        let (lda, ldb, ldc) = (triangle.layout_a().ld, triangle.layout_b().ld, triangle.layout_c().ld);
        let [a_row, a_column] = if triangle.trans ^ triangle.right { [1, lda as u32] } else { [lda as u32, 1] };
        let ([b_row, b_other], [c_row, c_other]) = (triangle.strides(ldb), triangle.strides(ldc));
        let params = TrmmParams {
            n: n as u32,
            others: others as u32,
            a_row,
            a_column,
            b_row,
            b_other,
            c_row,
            c_other,
            right: triangle.right.into(),
            upper: (!triangle.forward()).into(),
            unit: triangle.unit.into(),
            alpha,
        };
        let kernel = program.kernel(Kernel::of_file("dense/trmm", Spec::new()));
        let bindings = (0..3).map(|i| Binding::operand(i, &program.operands)).collect();
        let elements = n as u64 * others as u64;
        program.dispatch(kernel, &params, bindings, Grid::fold(elements.div_ceil(WORKGROUP_SIZE)));
        self.multiply(&mut program, [0, n.div_ceil(BLOCK)], (profile, &mut Vec::new()))?;
        Ok(program)
    }

    /// Adds the products beside the diagonal of a range of blocks.
    fn multiply(
        &self, program: &mut Program, blocks: [usize; 2], (profile, shared): (&DeviceProfile, &mut Vec<usize>),
    ) -> Result<()> {
        let Some([first, second]) = self.triangle.halves(blocks) else { return Ok(()) };
        let [ldb, ldc] = [self.triangle.layout_b(), self.triangle.layout_c()].map(|layout| layout.ld);
        let places = [(Resource::Operand(1), ldb), (Resource::Operand(2), ldc)];
        let factors = [self.alpha, 1.0];
        self.triangle.append_share(program, [first, second], places, factors, (profile, &mut *shared))?;
        self.multiply(program, first, (profile, &mut *shared))?;
        self.multiply(program, second, (profile, shared))
    }
}

operands! {
    impl[T: Element,] Trmm, T {
        fn record(a: T, b: T, c: T);
    }
}

lowered_as!(Trmm: f32);

pub(super) const INFO: Operation = Operation {
    name: "trmm",
    about: "multiplies by a triangular matrix",
    inputs: &[Input::new("a", "(m, m); (n, n) with side right"), Input::new("b", "(m, n)")],
    outputs: &[("c", "(m, n)")],
    types: &[DType::F32],
    options: &[SIDE, LOWER, UPPER, TRANS, UNIT, Setting::number("alpha", "1")],
    make: Some(make),
    variants: Trmm::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[16, 16], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (triangle, [a, b]) = Triangle::asked(asked)?;
    let op = Trmm { triangle, alpha: asked.settings().number("alpha")?, variant: asked.variant().to_owned() };
    let result = Role::Result(vec![triangle.m, triangle.n]);
    Ok(OpCall::new::<f32>(op, vec![Role::Given(a), Role::Given(b), result]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let of = |op: Trmm| Op::<f32>::lower(&op.variant(variant), profile);
    Ok(vec![of(Trmm::new(5, 7))?, of(Trmm::new(7, 70).right().upper())?])
}
