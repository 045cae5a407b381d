mod lowering;

use super::by_name::FORMAT;
use super::by_row::given_order;
use super::scalars::{ResultLayout, SCALARS, with_scalars};
use super::{Described, Format, MatrixLayout, Spmv};
use crate::program::prelude::*;
use lowering::SpmmLowering;

/// Multiplies a sparse matrix by a dense one: `C = alpha A B + beta C`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::sparse::Csr;
///
/// let (row_ptrs, col_idxs, values) = (vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
/// let gpu = Gpu::new()?;
/// let a = gpu.upload_matrix(&Csr { rows: 2, cols: 3, row_ptrs, col_idxs, values })?;
/// let b = gpu.upload(&[1.0f32, 0.5, 10.0, 5.0, 100.0, 50.0])?; // 3 x 2
/// let c = gpu.upload(&[1.0f32; 4])?;
/// let plan = Spmm::new(a.layout(), 2).beta(-1.0).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b, &c)?;
/// rec.submit()?;
/// assert_eq!(c.read()?, [200.0, 99.5, 29.0, 14.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// A is `rows` x `cols` in any [`Format`], with f32 or f16 values and u32 indices. B is `cols` x `n` and C is `rows` x
/// `n`, both row-major f32. [`ldb`](Self::ldb) and [`ldc`](Self::ldc) are the elements from one row to the next, `n` by
/// default; elements between rows are not changed. Operands are a [`DeviceMatrix`](crate::DeviceMatrix), B and C; an
/// untyped [`Executable`](crate::gpu::Executable) takes the lists of the format in its order instead of the matrix, and
/// then those of [`SparseMatrix::by_row`](super::SparseMatrix::by_row). C must not overlap the others. Any extent may
/// be 0, and the matrix may have no entries.
///
/// [`with_scalars`](Self::with_scalars) takes alpha and beta from the device, to change them without a new plan.
///
/// Values at duplicate positions add up. The values of padding are ignored. With `beta` = 0 (the default) C is not
/// read, so its old contents do not matter, even NaN. With `alpha` = 0 the result is `beta C`, and A and B are not
/// read.
///
/// # Precision and determinism
/// Products are summed in f32, in an order that depends on the matrix and the device. The error bound of each column is
/// that of [`Spmv`] ([`reference::spmm_bound`](crate::reference::spmm_bound)). NaN and infinities
/// propagate as in IEEE arithmetic. The same device, inputs and variant give the same bits.
///
/// # Cost
/// 2 n flop for each entry. Every list (without padding) is read once, and a row of B for each entry, from the cache if
/// B fits there. C is written once, and read once if `beta` is not 0. If `n`, `ldb` and `ldc` are multiples of four,
/// rows are read as vec4, which is nearly twice as fast. One dispatch for `csr-scalar`, `csr-vector`, `ell`, `jds` and
/// `sell`, and one more for every 2^20 entries of the longest row; several for the others, with scratch of one row of C
/// for each 32 of their steps. `csc`, and `coo` and `hybrid` on unsorted entries, read an order by row that is made
/// once, as [`Spmv`] says.
///
/// # Variants
/// `coo`; `csr-scalar`, `csr-vector`, `csr-merge`; `csc`; `ell`; `jds`; `hybrid`; `sell`. The name starts with the
/// format. For CSR, `auto` (the default) takes `csr-merge` if some rows are far longer than the mean, else
/// `csr-vector`.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant, a variant of another format, values
///   other than f32 and f16, or slices of 0 rows.
/// - [`Shape`](ErrorKind::Shape): a leading dimension below `n`.
/// - [`TooLarge`](ErrorKind::TooLarge): a list, B or C above the device's largest binding, or 2^32 or more rows
///   and entries together.
///
/// Upload checks indices ([`SparseMatrix::layout`](super::SparseMatrix::layout)). In lists from elsewhere, kernels
/// treat an index out of range as padding.
///
/// # Algorithm
/// Lanes cover dense columns, and a team walks the entries of A.
/// - `shaders/sparse/spmm_csr_vector.wgsl`: row splitting, C. Yang, A. Buluç and J. Owens, 2018.
/// - `spmm_csr_merge.wgsl`: the same authors, and D. Merrill and M. Garland, 2016.
/// - `spmm_coo.wgsl`: segmented sums with carries, G. Blelloch et al., 1993. `csc` reads its entries in an order by
///   row.
/// - `spmm_ell.wgsl`, `spmm_jds.wgsl`, `spmm_sell.wgsl`: as in [`Spmv`].
#[derive(Debug, Clone, PartialEq)]
pub struct Spmm {
    pub(crate) matrix: MatrixLayout,
    pub(crate) n: usize,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(crate) scalars: bool,
    ldb: Option<usize>,
    ldc: Option<usize>,
    tile: Option<(u32, u32, u32)>,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("coo", "teams share entries by row evenly, segmented sums, carries between teams"),
    Variant::portable("csr-scalar", "one thread sums an element of C"),
    Variant::portable("csr-vector", "a team of lanes sums a row, each lane some of its columns"),
    Variant::portable("csr-merge", "teams share row ends and entries evenly; carries between teams"),
    Variant::portable("csc", "entries by row, in an order made once, summed as in `coo`"),
    Variant::portable("ell", "a team of lanes sums the slots of a row"),
    Variant::portable("jds", "a team of lanes sums a row down the jagged diagonals"),
    Variant::portable("hybrid", "`ell`, then `coo` for the rest"),
    Variant::portable("sell", "a team of lanes sums a row of a slice"),
];

impl Spmm {
    /// Multiplies a matrix of this layout by a dense matrix of `n` columns.
    pub fn new(matrix: MatrixLayout, n: usize) -> Self {
        let variant = "auto".into();
        let (alpha, beta, scalars) = (1.0, 0.0, false);
        Self { matrix, n, alpha, beta, scalars, ldb: None, ldc: None, tile: None, variant }
    }

    product_builders!("B", "c");

    /// Sets the elements from one row of B to the next; the default is `n`.
    #[must_use]
    pub fn ldb(mut self, ldb: usize) -> Self {
        self.ldb = Some(ldb);
        self
    }

    /// Sets the elements from one row of C to the next; the default is `n`.
    #[must_use]
    pub fn ldc(mut self, ldc: usize) -> Self {
        self.ldc = Some(ldc);
        self
    }

    /// For tests and tuning: sets the threads of a workgroup, the lanes of a row, and the steps of a team in `coo`,
    /// `csc` and `csr-merge`.
    #[doc(hidden)]
    #[must_use]
    pub fn tile(mut self, workgroup_size: u32, lanes: u32, items: u32) -> Self {
        self.tile = Some((workgroup_size, lanes, items));
        self
    }

    /// Returns whether B and C are vectors, which the kernels of [`Spmv`] take.
    fn of_vectors(&self) -> bool {
        let dense = |rows: usize, ld: Option<usize>| rows <= 1 || ld.unwrap_or(1) == 1;
        let MatrixLayout { rows, cols, .. } = self.matrix;
        self.n == 1 && self.tile.is_none() && dense(cols, self.ldb) && dense(rows, self.ldc)
    }

    /// Returns the variant that suits, and why.
    fn choose(&self, profile: &DeviceProfile) -> (&'static str, String) {
        let mean = self.matrix.mean();
        if self.of_vectors() {
            let (variant, why) = Spmv::new(self.matrix).choose(profile);
            let variant = if variant == "csr-segmented" { "csr-merge" } else { variant };
            return (variant, format!("one column, a vector: {why}"));
        }
        match self.matrix.format {
            Format::Csr if self.matrix.skewed() => {
                let longest = self.matrix.longest;
                ("csr-merge", format!("the longest row has {longest} entries, the mean {mean}: teams share rows"))
            }
            Format::Csr if self.matrix.few_rows(self.n.div_ceil(4), mean, profile) => (
                "csr-merge",
                format!("{} rows of {mean} entries are too few to fill the device: teams share rows", self.matrix.rows),
            ),
            Format::Csr => ("csr-vector", "neighbouring lanes read neighbouring elements of B".into()),
            format => (format.name(), format!("the variant for {}", format.name())),
        }
    }

    /// Returns a dense operand whose rows start `ld` elements apart.
    fn dense(&self, name: &'static str, rows: usize, ld: usize, access: Access) -> Result<Operand> {
        let n = self.n;
        if ld < n {
            return Err(err!(
                Shape,
                "{}: the leading dimension of {name} is {ld}; it must be at least {n}, the row length",
                self.matrix.name("spmm")
            ));
        }
        let before = elements("spmm", name, &[rows.saturating_sub(1), ld])?;
        let len = if rows == 0 || n == 0 { 0 } else { elements("spmm", name, &[before + n])? };
        Ok(Operand { name, dtype: DType::F32, len, access })
    }
}

impl Op<f32> for Spmm {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { matrix, n, .. } = *self;
        let (ldb, ldc) = (self.ldb.unwrap_or(n), self.ldc.unwrap_or(n));
        if self.scalars {
            let operand = self.dense("c", matrix.rows, ldc, Access::ReadWrite)?;
            let product = Self { alpha: 1.0, beta: 0.0, scalars: false, ldc: None, ..self.clone() };
            let c = ResultLayout { rows: matrix.rows, cols: n, stride: ldc, operand };
            return with_scalars(product.lower(profile)?, c, profile);
        }
        let (variant, mut decision) = choose("spmm", &self.variant, VARIANTS, profile, || self.choose(profile))?;
        let mut operands = matrix.product_lists("spmm", variant)?;
        operands.push(self.dense("b", matrix.cols, ldb, Access::Read)?);
        operands.push(self.dense("c", matrix.rows, ldc, Access::ReadWrite)?);
        matrix.check("spmm", profile, &operands)?;
        matrix.suits("spmm", variant)?;
        let product = self.has_product(&mut decision);
        let mut program = Program::new("spmm", decision);
        let (columns, used) = if product { (n, &operands[..]) } else { (0, &operands[operands.len() - 1..]) };
        program.cost = matrix.cost(used, columns, self.beta != 0.0);
        program.operands = operands;
        if matrix.rows == 0 || n == 0 {
            return Ok(program);
        }
        if self.of_vectors() {
            let spmv = Spmv::new(matrix).alpha(self.alpha).beta(self.beta).variant(variant.name);
            let Program { scratch, kernels, dispatches, .. } = spmv.lower(profile)?;
            return Ok(Program { scratch, kernels, dispatches, ..program });
        }
        Ok(SpmmLowering::new(self, profile, program, ldb, ldc).lower(product))
    }
}

pub(super) const INFO: Operation = Operation {
    name: "spmm",
    about: "C = alpha A B + beta C, A sparse in any format, B and C dense",
    matrix: true,
    inputs: &[Input::new("b", "(cols, n)"), Input::optional("c", "(rows, n)")],
    outputs: &[("c", "(rows, n)")],
    types: &[DType::F32],
    options: &[FORMAT, Setting::number("alpha", "1"), Setting::number("beta", "0"), SCALARS],
    make: Some(make),
    variants: Spmm::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (lists, Described { layout, .. }) = asked.sparse::<Described>()?;
    asked.set("rows", &[layout.rows]);
    let (b, [_, n]) = asked.free_of("b", [layout.cols, 32], DType::F32)?;
    asked.check("b", &b, &[layout.cols, n], DType::F32)?;
    // By default C starts as zeros.
    let shape = [layout.rows, n];
    let c = if asked.has_more() { asked.of("c", &shape, DType::F32)? } else { HostArray::zeros(&shape, DType::F32)? };
    let settings = asked.settings();
    let mut op = Spmm::new(*layout, n).alpha(settings.number("alpha")?).beta(settings.number("beta")?);
    let order = given_order(layout, &lists, VARIANTS, asked.variant())?;
    let scalars = asked.named_of(SCALARS.name, &[2], DType::F32)?;
    if scalars.is_some() {
        op = op.with_scalars();
    }
    let others = [b].into_iter().chain(scalars).map(Role::Given).chain([Role::Updated(c)]);
    let operands = lists.into_iter().map(Role::Given).chain(order).chain(others).collect();
    Ok(OpCall::new::<f32>(op.variant(asked.variant()), operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for format in super::sample_formats(variant) {
        for (entries, longest) in [(3000, 9), (60_000, 1 << 15), (3, 1)] {
            for (n, values) in [(32, DType::F32), (40, DType::F16), (33, DType::F32), (1, DType::F16)] {
                let matrix = MatrixLayout { rows: 1000, cols: 900, entries, longest, format, values };
                programs.push(Spmm::new(matrix, n).beta(1.0).variant(variant).lower(profile)?);
            }
            let matrix = MatrixLayout { rows: 1000, cols: 900, entries, longest, format, values: DType::F32 };
            programs.push(Spmm::new(matrix, 32).ldc(40).with_scalars().variant(variant).lower(profile)?);
        }
    }
    Ok(programs)
}
