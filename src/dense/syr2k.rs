use super::product::Product;
use super::rank_update::{OPTIONS, RankUpdate, VARIANTS, rank_update_builders};
use crate::program::prelude::*;

/// Adds two products and updates one triangle of a symmetric matrix: `C = alpha (A B^T + B A^T) + beta C`, or
/// `alpha (A^T B + B^T A) + beta C`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (a, b) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[3.0f32, 4.0])?); // 2 x 1 each
/// let c = gpu.upload(&[0.0f32, 7.0, 0.0, 0.0])?;
/// let plan = Syr2k::new(2, 1).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b, &c)?;
/// rec.submit()?;
/// assert_eq!(c.read()?, [6.0, 7.0, 10.0, 16.0]); // the upper triangle stays
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `a` and `b` are n x k and row-major, or k x n with [`trans`](Self::trans); `c` is n x n. The lower triangle of `c`
/// is written, or the [`upper`](Self::upper) one, with the diagonal; the rest is neither read nor written.
/// [`full`](Self::full) writes all of it. With `beta` = 0 (the default) nothing of `c` is read. [`lda`](Self::lda),
/// [`ldb`](Self::ldb) and [`ldc`](Self::ldc) count the elements from one row to the next. `a` and `b` must be other
/// wgpu buffers than `c`. Any extent may be 0.
///
/// # Precision and determinism
/// As [`Gemm`](crate::Gemm) in f32, for sums of `2 k` products. The same device gives the same bits in every run.
///
/// # Cost
/// `2 n (n + 1) k` flop: half of the tiles of a product, and whole tiles on the diagonal; `4 n^2 k` with `full`. Two
/// dispatches: the first writes A and B side by side, in both orders, to 16 n k bytes of scratch, so that one product
/// of `2 k` terms remains. For k above 2^19 (2^12 on software drivers) 4 n^2 bytes more.
///
/// # Variants
/// `tiles`: tiles outside of the triangle are skipped; with `full`, the product is that of `auto` of `Gemm`.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a leading dimension below the row length; an unknown
///   variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand, or 8 n k bytes, above the largest binding.
/// - [`Unsupported`](ErrorKind::Unsupported): another element type than f32.
///
/// # Algorithm
/// `shaders/dense/syr2k.wgsl`, then as [`Syrk`](crate::Syrk).
#[derive(Debug, Clone, PartialEq)]
pub struct Syr2k {
    pub(crate) update: RankUpdate,
    variant: String,
}

kernel_params! {
    struct Syr2kParams { rows: u32, columns: u32, lda: u32, ldb: u32, pitch: u32, second: u32 }
}

impl Syr2k {
    /// Takes the side of C and the columns of A and B. `alpha` is 1, `beta` 0, and the lower triangle is written.
    pub fn new(n: usize, k: usize) -> Self {
        Self { update: RankUpdate::new(n, k), variant: "auto".into() }
    }

    /// Computes `A^T B + B^T A`, with A and B stored as k x n.
    #[must_use]
    pub fn trans(mut self) -> Self {
        self.update.trans = true;
        self
    }

    rank_update_builders!();

    /// Sets the elements from one stored row of `b` to the next; the row length by default.
    #[must_use]
    pub fn ldb(mut self, ldb: usize) -> Self {
        self.update.ldb = Some(ldb);
        self
    }

    /// The elements from one stored row of A to the next, and of B.
    pub(crate) fn pitches(&self) -> [usize; 2] {
        let row = self.update.stored()[1];
        [self.update.lda, self.update.ldb].map(|ld| ld.unwrap_or(row))
    }

    /// The product of A and B side by side, and B and A so.
    pub(crate) fn product(&self) -> Product {
        self.update.product(self.update.k.saturating_mul(2), [None; 2])
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let name = INFO.name;
        let mut program = Program::of_only_variant(name, &self.variant, VARIANTS, profile)?;
        let multiplied = self.product().lower(dtype, profile).map_err(|e| e.context(name))?;
        let [left, _, c] = &multiplied.operands[..] else { return Ok(program) };
        let ([rows, columns], pitches) = (self.update.stored(), self.pitches());
        for (pitch, what) in pitches.into_iter().zip(["lda", "ldb"]) {
            if pitch < columns {
                return Err(err!(
                    InvalidArgument,
                    "{name}: {what} is {pitch}, and a row has {columns} elements; it must not be less"
                ));
            }
        }
        let len = |pitch| match rows * columns {
            0 => Ok(0),
            _ => Ok(elements(name, "a factor", &[rows - 1, pitch])?.saturating_add(columns)),
        };
        let operand = |name, len| Operand { name, dtype, len, access: Access::Read };
        program.operands = vec![operand("a", len(pitches[0])?), operand("b", len(pitches[1])?), c.clone()];
        profile.check_bindings(name, &program.operands, "multiply blocks of rows")?;
        program.cost = self.update.cost(2, self.update.k.saturating_mul(2));
        let what = format_args!("two copies of {rows} x {columns} elements, twice");
        profile.check_scratch(name, what, left.bytes(), "multiply blocks of rows")?;
        let [left, right] = [0, 1].map(|_| left.bytes()).map(|bytes| program.scratch(bytes.max(4)));
        if rows * columns > 0 {
            let (a, b) = (Binding::operand(0, &program.operands), Binding::operand(1, &program.operands));
            let index = |what, value| index_u32(name, what, value);
            let params = Syr2kParams {
                rows: index("rows", rows)?,
                columns: index("columns", columns)?,
                lda: index("lda", pitches[0])?,
                ldb: index("ldb", pitches[1])?,
                pitch: index("columns", if self.update.trans { columns } else { 2 * columns })?,
                second: index("elements", if self.update.trans { rows * columns } else { columns })?,
            };
            let kernel = program.kernel(Kernel::of_file("dense/syr2k", Spec::new()));
            let grid = Grid::fold((rows as u64 * columns as u64).div_ceil(256));
            program.dispatch(kernel, &params, vec![a, b, left, right], grid);
        }
        program.append(multiplied, &[left.resource, right.resource, Resource::Operand(2)]);
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Syr2k, T {
        fn record(a: T, b: T, c: T);
    }
}

lowered_as!(Syr2k: f32);

pub(super) const INFO: Operation = Operation {
    name: "syr2k",
    about: "C = alpha (A B^T + B A^T) + beta C, or one triangle of it",
    inputs: &[Input::new("a", "(n, k); (k, n) with trans"), Input::new("b", "as a"), Input::optional("c", "(n, n)")],
    outputs: &[("c", "(n, n)")],
    types: &[DType::F32],
    options: OPTIONS,
    make: Some(make),
    variants: Syr2k::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[16, 16], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (update, a) = RankUpdate::asked(asked)?;
    let b = asked.like("b", &update.stored())?;
    let c = update.asked_c(asked)?;
    let op = Syr2k { update, variant: asked.variant().to_owned() };
    Ok(OpCall::new::<f32>(op, vec![Role::Given(a), Role::Given(b), Role::Updated(c)]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Syr2k::new(20, 9).variant(variant);
    let ops = [op.clone(), op.clone().full(), op.upper().trans().beta(1.0)];
    ops.iter().map(|op| Op::<f32>::lower(op, profile)).collect()
}
