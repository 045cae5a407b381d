//! The matrix product: checks and lowers [`Gemm`](super::Gemm) and [`GemmBatched`](super::GemmBatched).
//!
//! The batch is one more extent, and a single product is a batch of one. [`way`] resolves the name of a variant to
//! a way. The file of each way has its checks and its lowering: [`plain`], [`register`] with [`small`],
//! [`split_k`], [`coop`] with [`packing`]. [`layout`] has the operands, [`division`] the tiles of C, [`policy`] the
//! choice of a way and a division, [`predict`] the times that it compares, and [`job`] the common part of all
//! lowerings. [`builder`] has the methods that both descriptors share, [`options`] and [`samples`] the catalogue
//! entries.

mod builder;
mod coop;
mod division;
mod job;
mod layout;
pub(super) mod options;
mod packing;
mod plain;
mod policy;
pub(crate) mod predict;
mod register;
pub(super) mod samples;
mod small;
mod split_k;
mod way;

pub(super) use self::builder::product_descriptor;
pub(crate) use self::division::{Division, register_sides};
pub use self::division::{ProductTile, ThreadTile};
pub(crate) use self::job::{ProductParams, dispatch_chunks, dispatch_flop, tiles};
pub(crate) use self::layout::{BatchLayout, DenseLayout};
pub(crate) use self::policy::{batch_seconds, rows_of};
pub(crate) use self::register::{RegisterForm, StepCount, WalkedKernel};
pub(super) use self::way::{BATCHED_VARIANTS, VARIANTS};

use self::job::ProductJob;
use self::way::Way;
use super::{Activation, Precision};
use crate::analysis::Matmul;
use crate::program::prelude::*;

/// The products of a batch: `C = activation(alpha op(A) op(B) + beta C + bias)`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Product {
    /// True for a [`GemmBatched`](super::GemmBatched), whose kernels begin at a matrix of the batch.
    pub(crate) batched: bool,
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    /// Alpha and beta are an operand.
    pub(crate) scalars: bool,
    pub(crate) trans_a: bool,
    pub(crate) trans_b: bool,
    pub(crate) activation: Activation,
    pub(crate) bias: bool,
    /// The bias has an element for each row of C rather than each column.
    pub(crate) row_bias: bool,
    /// The bias and C are of f32, whatever the type of A and B.
    pub(crate) mixed: bool,
    pub(crate) lda: Option<usize>,
    pub(crate) ldb: Option<usize>,
    pub(crate) ldc: Option<usize>,
    /// Elements from one matrix to the next in a, b and c; by default matrices follow each other.
    pub(crate) strides: Option<[usize; 3]>,
    pub(crate) tile: Option<ProductTile>,
    pub(crate) thread: Option<[u32; 2]>,
    /// Slices of k of `split-k`.
    pub(crate) slices: Option<u32>,
    pub(crate) products: Option<u32>,
    /// Kernels with sums in registers have the steps of k in a tile written out; by default those that compute blocks.
    pub(crate) unrolled: Option<bool>,
    /// Their workgroup memory is made of vec4s.
    pub(crate) vectors: Option<bool>,
    pub(crate) precision: Precision,
    /// `coop` has sums of its own for each step of k.
    pub(crate) fresh_sums: bool,
    /// `coop` copies both factors first, or none; by default whichever is predicted to be faster.
    pub(crate) packs: Option<bool>,
    pub(crate) deterministic: bool,
    /// Only this triangle of C is written.
    pub(crate) triangle: Option<StoredTriangle>,
    /// C follows from the sums and from its rows' statistics.
    pub(crate) row_end: Option<RowEnd>,
    /// Takes the place of the kernel of `double`.
    pub(crate) kernel: Option<WalkedKernel>,
    pub(crate) variant: String,
}

/// What attention's gradients make of a product, with an operand `rows` of four f32 for each row of all C: the
/// logarithm of a row, its mean, the first column that counts, and one past the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowEnd {
    /// `exp(alpha sum - logarithm)`.
    Weights,
    /// `alpha weight (sum - mean)`, with an operand `weights` as C.
    Slopes,
}

/// One half of a square matrix, with the diagonal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredTriangle {
    Lower,
    Upper,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ProductTypes {
    pub(crate) factors: DType,
    pub(crate) result: DType,
}

impl ProductTypes {
    pub(crate) fn all(dtype: DType) -> Self {
        Self { factors: dtype, result: dtype }
    }

    /// Factors of f16 for a result of f32.
    pub(crate) const MIXED: Self = Self { factors: DType::F16, result: DType::F32 };
}

impl Product {
    /// Creates the product of an m x k and a k x n matrix.
    pub(crate) fn new(m: usize, n: usize, k: usize) -> Self {
        Self { batch: 1, m, n, k, alpha: 1.0, strides: Some([0; 3]), variant: "auto".into(), ..Self::default() }
    }

    /// Creates the products of `batch` pairs, which follow each other.
    pub(crate) fn of_batch(batch: usize, m: usize, n: usize, k: usize) -> Self {
        Self { batched: true, batch, strides: None, ..Self::new(m, n, k) }
    }

    pub(crate) fn op(&self) -> &'static str {
        if self.batched { "gemm-batched" } else { "gemm" }
    }

    pub(crate) fn name(&self) -> String {
        let Self { batched, batch, m, n, k, .. } = *self;
        if batched { format!("gemm-batched {batch} x {m} x {n} x {k}") } else { format!("gemm {m} x {n} x {k}") }
    }

    pub(crate) fn types(&self, dtype: DType) -> Result<ProductTypes> {
        match (self.mixed, dtype) {
            (false, _) => Ok(ProductTypes::all(dtype)),
            (true, DType::F16 | DType::Bf16) => Ok(ProductTypes { factors: dtype, result: DType::F32 }),
            (true, _) => Err(err!(
                Unsupported,
                "{}: mixed precision multiplies factors of 16 bits, not {dtype}; plan it for f16, or leave it out",
                self.name()
            )),
        }
    }

    /// Says if A and B are read.
    pub(crate) fn has_product(&self) -> bool {
        self.k > 0 && self.alpha != 0.0
    }

    /// The inner extent, 0 if A and B are not read.
    pub(crate) fn inner(&self) -> usize {
        if self.has_product() { self.k } else { 0 }
    }

    /// Returns the requested division, or `suits`. For a tile without a thread tile, `thread_of` gives the thread
    /// tile.
    fn division(&self, suits: Division, thread_of: impl Fn(ProductTile) -> [u32; 2]) -> Division {
        Division {
            tile: self.tile.unwrap_or(suits.tile),
            thread: self.thread.unwrap_or_else(|| self.tile.map_or(suits.thread, thread_of)),
            pace: suits.pace,
        }
    }

    /// The minimum cost of the product. A matrix that all products share is read once.
    pub(crate) fn cost(&self, layouts: [BatchLayout; 3], types: ProductTypes) -> Cost {
        let batch = self.batch as f64;
        let [a, b, c] = layouts.map(|BatchLayout { at, .. }| at.rows as f64 * at.cols as f64);
        let times = |of: BatchLayout| if of.stride == 0 { batch.min(1.0) } else { batch };
        let factors = match self.has_product() && c > 0.0 {
            true => times(layouts[0]) * a + times(layouts[1]) * b,
            false => 0.0,
        };
        let results = if self.beta == 0.0 { batch * c } else { 2.0 * batch * c };
        let bias = if self.bias && batch * c > 0.0 { self.bias_len() as f64 } else { 0.0 };
        let [of_factor, of_result] = [types.factors, types.result].map(|dtype| dtype.size() as f64);
        let flop = 2.0 * batch * c * self.inner() as f64;
        Cost { flop, bytes: factors * of_factor + (results + bias) * of_result }
    }

    /// The bytes that workgroups request from memory: a tile of C reads its rows of A and its columns of B.
    fn traffic(&self, cost: Cost, [rows, columns]: [u64; 2], dtype: DType) -> f64 {
        let product = Matmul { m: self.m as u64, n: self.n as u64, k: self.k as u64 };
        let once = product.elements_read(product.m, product.n) as f64;
        cost.bytes + (product.elements_read(rows, columns) as f64 - once) * dtype.size() as f64
    }

    /// Checks that a variant offers the requested precision.
    fn check_precision(&self, name: &str, factors: DType, profile: &DeviceProfile) -> Result<()> {
        let precision = self.precision.name();
        match self.precision {
            Precision::Strict => return Ok(()),
            Precision::Exact if self.variant == "coop" => {
                return Err(err!(
                    InvalidArgument,
                    "{name}: `coop` runs on cooperative matrices, {precision} by fused multiply-adds; take `auto`"
                ));
            }
            Precision::Exact => return Ok(()),
            Precision::Split if self.batched => {
                return Err(err!(
                    InvalidArgument,
                    "{name}: {precision} is not offered for a batch; take Precision::Strict, or `gemm` for each \
                     product"
                ));
            }
            Precision::Split | Precision::Tensor => {}
        }
        if !matches!(self.variant.as_str(), "auto" | "coop") {
            return Err(err!(
                InvalidArgument,
                "{name}: `{}` computes in f32, which is Precision::Exact; only `coop` offers {precision}; take \
                 that, or `auto`",
                self.variant
            ));
        }
        if self.precision == Precision::Split && factors == DType::F16 {
            return Err(err!(
                InvalidArgument,
                "{name}: {precision} splits elements of f32 into two of f16, but A and B are already of f16; take \
                 Precision::Tensor, which multiplies those directly"
            ));
        }
        let requires = Requires { f16: true, cooperative: true, ..Requires::NOTHING };
        if let Some(missing) = requires.missing(profile) {
            return Err(err!(
                Unsupported,
                "{name}: {precision} needs {missing}, which {} does not have; take Precision::Strict",
                profile.name
            ));
        }
        Ok(())
    }

    pub(super) fn lower(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        self.lower_as(self.types(dtype)?, profile)
    }

    pub(super) fn lower_as(&self, types: ProductTypes, profile: &DeviceProfile) -> Result<Program> {
        if self.scalars && [self.alpha, self.beta] != [1.0; 2] {
            // Any may come, so everything is read.
            return Self { alpha: 1.0, beta: 1.0, ..self.clone() }.lower_as(types, profile);
        }
        let name = &self.name();
        layout::check_type(name, types.factors, profile)?;
        let layouts = self.layouts(name)?;
        let operands = self.operands(name, layouts, types)?;
        self.check_operands(name, &operands, profile)?;
        self.check_precision(name, types.factors, profile)?;
        let bits = Bits { rounds: true, deterministic: self.deterministic };
        let variants = if self.batched { BATCHED_VARIANTS } else { VARIANTS };
        let job = ProductJob { product: self, name, layouts, types, profile };
        let (variant, mut decision) =
            choose_with(self.op(), &self.variant, variants, profile, bits, || policy::variant(&job, variants))?;
        let (way, division) = Way::of(variant.name, &job)?;

        if let Way::Coop(_) = way {
            match self.precision {
                Precision::Split => decision.because("each element of A and B is split into two of f16"),
                _ if types.factors == DType::F16 => {}
                _ => decision.because("A and B are rounded to f16"),
            }
        }
        if !matches!(way, Way::Elements | Way::Plain(_)) {
            let Division { tile: ProductTile { m, n, k }, thread: [rows, columns], .. } = division;
            decision.because(format_args!("tile {m} x {n} x {k} by {rows} x {columns}"));
        }
        if let Some(slices @ 2..) = way.slices() {
            decision.because(format_args!("k in {slices} slices"));
        }
        if !self.has_product() {
            let zero = if self.k == 0 { "k" } else { "alpha" };
            decision.because(format_args!("{zero} is 0, so A and B are not read"));
        }
        let mut program = Program::new(self.op(), decision);
        program.cost = self.cost(layouts, types);
        if self.has_product() && !self.batched {
            program.traffic = Some(self.traffic(program.cost, way.reads(division), types.factors));
        }
        program.operands = operands;
        if self.batch == 0 || self.m == 0 || self.n == 0 {
            return Ok(program);
        }
        if self.has_product() {
            way.lower(division, &job, &mut program)?;
        } else {
            plain::lower_end(&job, &mut program)?;
        }
        Ok(program)
    }
}

/// Helpers of the tests of products.
#[cfg(test)]
pub(super) mod trial {
    use crate::error::{ErrorKind, Result};
    use crate::program::{DeviceProfile, Op, Program};

    pub(in super::super) fn lower(op: &impl Op<f32>, profile: &DeviceProfile) -> Result<Program> {
        op.lower(profile)
    }

    pub(in super::super) fn refusal(op: &impl Op<f32>, profile: &DeviceProfile) -> (ErrorKind, String) {
        let e = op.lower(profile).unwrap_err();
        (e.kind(), e.to_string())
    }
}
