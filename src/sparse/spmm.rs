//! The product of a sparse and a dense matrix.

mod lowering;

use super::by_name::FORMAT;
use super::{Described, Format, MatrixLayout};
use crate::array::HostArray;
use crate::element::DType;
use crate::error::{Result, err};
use crate::program::{Access, Asked, DeviceProfile, Form, Input, Op, Operand, Operation, Program, Role};
use crate::program::{Setting, Variant, choose};
use crate::shape::elements;
use lowering::SpmmLowering;

/// Product of a sparse and a dense matrix: `C = alpha A B + beta C`.
///
/// # Shapes
/// A has `rows` x `cols` elements, stored in any [`Format`], with values of f32 or f16 and indices of u32. B has `cols`
/// rows of `n` elements and C has `rows` of them, of f32, row after row; [`ldb`](Self::ldb) and [`ldc`](Self::ldc) are
/// the elements from one row to the next, `n` unless said, and what lies between rows is left alone. C must not overlap
/// the others. Operands are the matrix, B, C: a plan takes a [`DeviceMatrix`](crate::DeviceMatrix). Without types (as
/// [`Executable`](crate::gpu::Executable)) they are the lists of the format, in its order, then B and C.
///
/// Any extent may be 0, and the matrix may have no entries. A position that comes more than once counts as the sum of its
/// values. Padding never multiplies, whatever its value is. With `beta` = 0 (the default) C is not read, so what it
/// holds, NaN too, does not matter. With `alpha` = 0 the result is `beta C`, and A and B are not read.
///
/// # Precision and determinism
/// Products are summed in f32, in an order that the matrix and the device decide. Each column errs by no more than
/// [`Spmv`](crate::Spmv) does ([`reference::spmm_bound`](crate::reference::spmm_bound)). Same device, same inputs, same
/// variant: same bits. NaN and infinities go through as IEEE arithmetic has them.
///
/// # Cost
/// 2 n flop for each entry; every list read once without its padding, and a row of B for each entry, from the device's cache if it fits there;
/// C written once, and read once if `beta` is not 0. Dense rows are read in vectors of four where `n`, `ldb` and `ldc` are
/// multiples of four, which is nearly twice as fast as without. One dispatch for `csr-scalar`, `csr-vector`, `ell`,
/// `jds` and `sell` (one more for every 2^20 entries of a longer row); several for the others, whose scratch is a
/// row of C for each 32 of their steps. `csc`, and `coo` of entries in no order, sort on each call and take 12 to 16
/// bytes of scratch for each entry and those of [`RadixSort`](crate::RadixSort) beside.
///
/// # Variants
/// `coo`; `csr-scalar`, `csr-vector`, `csr-merge` for compressed rows; `csc`, `ell`, `jds`, `hybrid`, `sell` for these
/// formats. `auto` (the default) takes for compressed rows `csr-merge` if some are far longer than the mean, else
/// `csr-vector`; for the others the one of their format.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant, one of another format, slices of 0 rows.
/// [`Shape`](crate::ErrorKind::Shape): a leading dimension below `n`. [`TooLarge`](crate::ErrorKind::TooLarge): a list, B
/// or C above the device's largest binding, rows and entries of more than 2^32 - 1 together. Indices out of range are
/// refused on upload ([`SparseMatrix::layout`](super::SparseMatrix::layout)); kernels take those in lists of other origin
/// for padding.
///
/// # Algorithm
/// Lanes along the dense columns, entries of A one after another. `shaders/sparse/spmm_csr_vector.wgsl`: C. Yang, A.
/// Buluç and J. Owens (2018), "row splitting". `spmm_csr_merge.wgsl`: the same authors, and D. Merrill and M. Garland
/// (2016). `spmm_coo.wgsl`: segmented sums with carries (G. Blelloch et al. 1993). `spmm_ell.wgsl`, `spmm_jds.wgsl`,
/// `spmm_sell.wgsl`: as those of [`Spmv`](crate::Spmv). `csc` sorts its entries by row.
///
/// # Example
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
#[derive(Debug, Clone, PartialEq)]
pub struct Spmm {
    pub(crate) matrix: MatrixLayout,
    pub(crate) n: usize,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    ldb: Option<usize>,
    ldc: Option<usize>,
    tile: Option<(u32, u32, u32)>,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable(
        "coo",
        "entries in equal shares, segmented sums, carries from share to share; sorts what is in no order",
    ),
    Variant::portable("csr-scalar", "one invocation sums an element of C"),
    Variant::portable("csr-vector", "neighbouring lanes sum a row, each some of its columns"),
    Variant::portable(
        "csr-merge",
        "ends of rows and entries are merged and shared evenly; carries from share to share",
    ),
    Variant::portable("csc", "entries sorted by row, summed as by `coo`"),
    Variant::portable("ell", "neighbouring lanes sum a row of places, each some of its columns"),
    Variant::portable("jds", "neighbouring lanes sum a row down the jagged diagonals"),
    Variant::portable("hybrid", "`ell` for the places, then `coo` for the list"),
    Variant::portable("sell", "neighbouring lanes sum a row of its slice"),
];

impl Spmm {
    /// With a matrix that is stored like this, and dense matrices of `n` columns.
    pub fn new(matrix: MatrixLayout, n: usize) -> Self {
        let variant = "auto".into();
        Self { matrix, n, alpha: 1.0, beta: 0.0, ldb: None, ldc: None, tile: None, variant }
    }

    /// Factor of the product; 1 by default. With 0, A and B are not read.
    #[must_use]
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    /// Factor of what C holds before; 0 by default, and C is then not read.
    #[must_use]
    pub fn beta(mut self, beta: f32) -> Self {
        self.beta = beta;
        self
    }

    /// Elements from one row of B to the next; `n` by default.
    #[must_use]
    pub fn ldb(mut self, ldb: usize) -> Self {
        self.ldb = Some(ldb);
        self
    }

    /// Elements from one row of C to the next; `n` by default.
    #[must_use]
    pub fn ldc(mut self, ldc: usize) -> Self {
        self.ldc = Some(ldc);
        self
    }

    crate::program::variants!(variant);

    /// Invocations of a workgroup, lanes of a row, and steps of a share in `coo`, `csc` and `csr-merge`, instead of what the
    /// device's policy has: for tuning.
    #[doc(hidden)]
    #[must_use]
    pub fn tile(mut self, workgroup_size: u32, lanes: u32, items: u32) -> Self {
        self.tile = Some((workgroup_size, lanes, items));
        self
    }

    /// Which variant, and why.
    fn choose(&self) -> (&'static str, String) {
        let mean = self.matrix.mean();
        match self.matrix.format {
            Format::Csr if self.matrix.skewed() => {
                let longest = self.matrix.longest;
                (
                    "csr-merge",
                    format!(
                        "the longest row has {longest} entries and the mean one {mean}: work is shared evenly"
                    ),
                )
            }
            Format::Csr => ("csr-vector", "lanes along the columns read rows of B in one piece".into()),
            format => (format.name(), format!("the way of {}", format.name())),
        }
    }

    /// The elements of a dense operand: its rows start `ld` elements apart.
    fn dense(&self, name: &'static str, rows: usize, ld: usize, access: Access) -> Result<Operand> {
        let n = self.n;
        if ld < n {
            return Err(err!(
                Shape,
                "{}: the leading dimension of {name} is {ld}, and its rows have {n} elements; it must be {n} or more",
                self.matrix.name("spmm")
            ));
        }
        let before = elements("spmm", name, &[rows.saturating_sub(1), ld])?;
        let len = if rows == 0 || n == 0 { 0 } else { elements("spmm", name, &[before + n])? };
        Ok(Operand { name, dtype: DType::F32, len, access })
    }
}

impl Op<f32> for Spmm {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { matrix, n, .. } = *self;
        let (ldb, ldc) = (self.ldb.unwrap_or(n), self.ldc.unwrap_or(n));
        let mut operands = matrix.operands("spmm")?;
        operands.push(self.dense("b", matrix.cols, ldb, Access::Read)?);
        operands.push(self.dense("c", matrix.rows, ldc, Access::ReadWrite)?);
        matrix.check("spmm", profile, &operands)?;
        let (variant, mut decision) = choose("spmm", &self.variant, VARIANTS, profile, || self.choose())?;
        matrix.suits("spmm", variant)?;
        let product = matrix.places() > 0 && matrix.cols > 0 && self.alpha != 0.0;
        if !product {
            let zero = if self.alpha == 0.0 { "alpha is 0" } else { "there are no entries" };
            decision.because(format_args!("{zero}, so c is only scaled"));
        }
        let mut program = Program::new("spmm", decision);
        let (columns, used) = if product { (n, &operands[..]) } else { (0, &operands[operands.len() - 1..]) };
        program.cost = matrix.cost(used, columns, self.beta != 0.0);
        program.operands = operands;
        if matrix.rows == 0 || n == 0 {
            return Ok(program);
        }
        SpmmLowering::new(self, profile, program, ldb, ldc).lower(product)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "spmm",
    about: "C = alpha A B + beta C, A sparse in any format, B and C dense",
    matrix: true,
    inputs: &[Input::new("b", "(cols, n)"), Input::optional("c", "(rows, n)")],
    outputs: &[("c", "(rows, n)")],
    types: &[DType::F32],
    options: &[FORMAT, Setting::number("alpha", "1"), Setting::number("beta", "0")],
    make: Some(make),
    variants: Spmm::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let (lists, Described { layout, .. }) = asked.sparse::<Described>()?;
    asked.set("rows", &[layout.rows]);
    let (b, [_, n]) = asked.free_of("b", [layout.cols, 32], DType::F32)?;
    asked.check("b", &b, &[layout.cols, n], DType::F32)?;
    // Without one, C begins as zeros.
    let shape = [layout.rows, n];
    let c = if asked.has_more() {
        asked.of("c", &shape, DType::F32)?
    } else {
        HostArray::zeros(&shape, DType::F32)?
    };
    let settings = asked.settings();
    let op = Spmm::new(*layout, n).alpha(settings.number("alpha")?).beta(settings.number("beta")?);
    let others = [Role::Given(b), Role::Updated(c)];
    let operands = lists.into_iter().map(Role::Given).chain(others).collect();
    Ok(Form::new::<f32>(op.variant(asked.variant()), operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for format in super::sample_formats(variant) {
        for (entries, longest) in [(3000, 9), (60_000, 1 << 15), (3, 1)] {
            for (n, values) in [(32, DType::F32), (40, DType::F16), (33, DType::F32), (1, DType::F16)] {
                let matrix = MatrixLayout { rows: 1000, cols: 900, entries, longest, format, values };
                programs.push(Spmm::new(matrix, n).beta(1.0).variant(variant).lower(profile)?);
            }
        }
    }
    Ok(programs)
}
