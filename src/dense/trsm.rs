use super::product::Product;
use super::triangle::{BLOCK, LOWER, SIDE, TRANS, Triangle, UNIT, UPPER, triangle_builders};
use crate::program::prelude::*;

/// Solves `op(A) X = alpha B` or `X op(A) = alpha B` for X, which takes the place of B; A is triangular.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// // 2 x = 4 and x + 4 y = 10, and the same with 2 and 9. Nothing above the diagonal is read.
/// let gpu = Gpu::new()?;
/// let a = gpu.upload(&[2.0f32, f32::NAN, 1.0, 4.0])?;
/// let b = gpu.upload(&[4.0f32, 2.0, 10.0, 9.0])?;
/// let plan = Trsm::new(2, 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b)?;
/// rec.submit()?;
/// assert_eq!(b.read()?, [2.0, 1.0, 2.0, 2.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `b` is m x n and row-major; `a` is square, with a side of m, or of n on the [`right`](Self::right). Only its lower
/// triangle is read, or the [`upper`](Self::upper) one, and with [`unit`](Self::unit) not its diagonal.
/// [`trans`](Self::trans) solves with its transpose. [`lda`](Self::lda) and [`ldb`](Self::ldb) count the elements from
/// one row to the next; elements of `b` between its rows are not changed. `a` must be another wgpu buffer than `b`. Any
/// extent may be 0. One column: [`Trsv`](crate::Trsv).
///
/// # Precision and determinism
/// Sums in f32. Blocks of the diagonal are solved by substitution, not inverted, so the residual is small however
/// ill-conditioned A is: `|op(A) X - alpha B| <= gamma |op(A)| |X|` with gamma about `2 n 2^-24`.
/// [`reference::trsm_bound`](crate::reference::trsm_bound) bounds the error of X. A zero on the diagonal gives
/// infinities, or NaN for 0/0, in its row of X and in those that depend on it. With `alpha` = 0 X is 0 and `a` is not
/// read. The same device gives the same bits in every run.
///
/// # Cost
/// `m^2 n` flop (`m n^2` on the right), of which all but one in `m / 64` are in matrix products. Two dispatches for
/// each 64 rows of A, or a few more. Scratch of 4 bytes for each element of B if A has more than 64 rows.
///
/// # Variants
/// `blocked`: halves of A, recursively, down to blocks of 64.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a leading dimension below the row length; an unknown
///   variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand or the scratch above the largest binding.
/// - [`Unsupported`](ErrorKind::Unsupported): another element type than f32.
///
/// # Algorithm
/// Recursive (Elmroth, Gustavson, Jonsson and Kagstrom, *Recursive blocked algorithms and hybrid data structures for
/// dense matrix library software*, 2004): solve for half of the unknowns, subtract their share from the other half by
/// a matrix product as [`Gemm`](crate::Gemm) chooses it, solve for that. `shaders/dense/trsm.wgsl` solves blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Trsm {
    pub(crate) triangle: Triangle,
    pub(crate) alpha: f32,
    variant: String,
}

const VARIANTS: &[Variant] =
    &[Variant::portable("blocked", "blocks of the diagonal by substitution, all else by matrix products")];

/// Columns of X of a workgroup.
const COLUMNS: u64 = 32;

kernel_params! {
    struct TrsmParams {
        n: u32, columns: u32, a_at: u32, a_unknown: u32, a_equation: u32, b_at: u32, b_row: u32, b_column: u32,
        work_at: u32, work_row: u32, work_column: u32, unit: u32, alpha: f32,
    }
}

impl Trsm {
    /// Takes the extents of B. `alpha` is 1, A lower and on the left.
    pub fn new(m: usize, n: usize) -> Self {
        Self { triangle: Triangle::new(m, n), alpha: 1.0, variant: "auto".into() }
    }

    triangle_builders!(right, upper, trans, unit, lda, ldb);

    /// Sets the factor of B.
    #[must_use]
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    variants!(variant);

    fn lower_as(&self, _: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { triangle, alpha, .. } = *self;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        program.operands = triangle.operands(INFO.name, None, profile)?;
        let (n, others) = (triangle.side(), triangle.others());
        let [a, b] = [(n as f64) * (n as f64 + 1.0) / 2.0, (n as f64) * (others as f64)];
        program.cost = Cost { flop: b * n as f64, bytes: 4.0 * (a + 2.0 * b) };
        if n == 0 || others == 0 {
            return Ok(program);
        }
        if alpha == 0.0 {
            let zero = Product { ldc: triangle.ldb, ..Product::new(triangle.m, triangle.n, 0) };
            program.append(zero.lower(DType::F32, profile)?, &[0, 0, 1].map(Resource::Operand));
            return Ok(program);
        }
        let work = if n > BLOCK {
            let bytes = 4 * (n as u64) * (others as u64);
            profile.check_scratch(INFO.name, format_args!("the solved unknowns"), bytes, "take fewer columns of B")?;
            Some(program.scratch(bytes))
        } else {
            None
        };
        let mut solving = Solving { triangle, profile, work, program: &mut program, shared: Vec::new() };
        solving.solve([0, n.div_ceil(BLOCK)], alpha)?;
        Ok(program)
    }
}

struct Solving<'a> {
    triangle: Triangle,
    profile: &'a DeviceProfile,
    /// X, without gaps.
    work: Option<Binding>,
    program: &'a mut Program,
    shared: Vec<usize>,
}

impl Solving<'_> {
    /// Solves for the unknowns of a range of blocks, whose right sides are still to be scaled.
    fn solve(&mut self, blocks: [usize; 2], alpha: f32) -> Result<()> {
        let Some([first, second]) = self.triangle.halves(blocks) else {
            self.solve_block(blocks[0], alpha);
            return Ok(());
        };
        self.solve(first, alpha)?;
        if let Some(work) = self.work {
            let places = [(work.resource, self.triangle.n), (Resource::Operand(1), self.triangle.layout_b().ld)];
            let of = (self.profile, &mut self.shared);
            self.triangle.append_share(self.program, [first, second], places, [-1.0, alpha], of)?;
        }
        self.solve(second, 1.0)
    }

    fn solve_block(&mut self, block: usize, alpha: f32) {
        let Triangle { right, trans, unit, .. } = self.triangle;
        let [lda, ldb] = [self.triangle.layout_a().ld, self.triangle.layout_b().ld];
        let (n, forward) = (self.triangle.rows([block, block + 1]), self.triangle.forward());
        let columns = self.triangle.others();
        let [a_row, a_column] = [lda as u32, 1];
        let [equation, unknown] = if right ^ trans { [a_column, a_row] } else { [a_row, a_column] };
        let [b_row, b_column] = self.triangle.strides(ldb);
        let [work_row, work_column] = self.triangle.strides(self.triangle.n);
        // Unknowns that are solved from the last to the first are counted so.
        let last = if forward { 0 } else { n as u32 - 1 };
        let turned = |stride: u32| if forward { stride } else { stride.wrapping_neg() };
        let params = TrsmParams {
            n: n as u32,
            columns: columns as u32,
            a_at: last * (lda as u32 + 1),
            a_unknown: turned(unknown),
            a_equation: turned(equation),
            b_at: last * b_row,
            b_row: turned(b_row),
            b_column,
            work_at: last * work_row,
            work_row: turned(work_row),
            work_column,
            unit: unit.into(),
            alpha,
        };
        let rest = |binding: Binding, offset| Binding { offset, size: binding.size - offset, ..binding };
        let [a, b] = [0, 1].map(|i| Binding::operand(i, &self.program.operands));
        let mut bindings =
            vec![rest(a, 4 * (block * BLOCK) as u64 * (lda as u64 + 1)), rest(b, self.triangle.place(block, ldb))];
        bindings.extend(self.work.map(|work| rest(work, self.triangle.place(block, self.triangle.n))));
        let spec = Spec::new().flag("WORK", self.work.is_some());
        let kernel = self.program.kernel(Kernel::of_file("dense/trsm", spec));
        let grid = Grid::fold((columns as u64).div_ceil(COLUMNS));
        self.program.dispatch(kernel, &params, bindings, grid);
    }
}

operands! {
    impl[T: Element,] Trsm, T {
        fn record(a: T, b: T);
    }
}

lowered_as!(Trsm: f32);

pub(super) const INFO: Operation = Operation {
    name: "trsm",
    about: "solves triangular systems with many right sides",
    inputs: &[Input::new("a", "(m, m); (n, n) with side right"), Input::new("b", "(m, n)")],
    outputs: &[("b", "(m, n)")],
    types: &[DType::F32],
    options: &[SIDE, LOWER, UPPER, TRANS, UNIT, Setting::number("alpha", "1")],
    make: Some(make),
    variants: Trsm::variants,
    samples,
    comparison: Some(Comparison::Sums),
    domains: &[("a", Domain::Finite), ("b", Domain::Finite)],
    example: Example { shape: &[16, 16], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (triangle, [a, b]) = Triangle::asked(asked)?;
    let alpha = asked.settings().number("alpha")?;
    let op = Trsm { triangle, alpha, variant: asked.variant().to_owned() };
    Ok(OpCall::new::<f32>(op, vec![Role::Given(a), Role::Updated(b)]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let of = |op: Trsm| Op::<f32>::lower(&op.variant(variant), profile);
    Ok(vec![of(Trsm::new(5, 7))?, of(Trsm::new(7, 70).right().upper())?])
}
