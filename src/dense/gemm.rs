//! The matrix product and its epilogue.

mod coop;
pub(crate) mod form;
mod packing;
mod policy;
pub(crate) mod register;

pub(crate) use self::policy::rows_of;

use self::coop::Form as CoopForm;
use self::policy::Division;
use self::register::{Form, Steps};
use super::{Activation, Precision};
use crate::analysis::Matmul;
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::facts::{Fact, Subject, fact};
use crate::program::{
    Access, Binding, Bits, Comparison, Cost, Determinism, DeviceClass, DeviceProfile, Grid, Kernel, Op,
    Operand, Operation, Program, Requires, Translation, Variant, choose_with, deterministic, kernel_params,
    operands,
};
use crate::shader::{Fragment, Spec};
use crate::shape::{elements, index_u32, round_up};
use half::f16;
use std::ops::Range;

/// Matrix product with a fused end: `C = activation(alpha op(A) op(B) + beta C + bias)`.
///
/// # Shapes
/// `op(A)` is m x k, `op(B)` is k x n, C is m x n, all row-major; `a` is stored k x m with
/// [`trans_a`](Self::trans_a), `b` n x k with [`trans_b`](Self::trans_b). Elements are `f32` or
/// [`f16`](half::f16), or f16 in the factors and f32 in all else ([`mixed_precision`](Self::mixed_precision)). Operands are `a`, `b`,
/// `c`, in this order; [`with_bias`](Self::with_bias) adds `bias`, n elements, one for each column of C,
/// and [`with_row_bias`](Self::with_row_bias) m elements, one for each row. A leading dimension (`lda`, `ldb`,
/// `ldc`) is the number of elements from one stored row to the next; an operand of `rows` rows then has
/// `(rows - 1) * ld + row length` elements. Elements of `c` between its rows are left as they are. `c` must
/// not overlap the others.
///
/// Any extent may be 0. With `beta` = 0 (the default) `c` is not read, so what it holds, NaN too, does not
/// matter. With `alpha` = 0 or k = 0 the result is `activation(beta C + bias)` and `a` and `b` are not read.
///
/// # Precision and determinism
/// Products are summed in f32, in the order of k, for both element types; the end is computed in f32 and
/// rounded once to the element type of C, where f16 overflows to infinity. The error before the activation is at most
/// `gamma(k + 4) (|alpha| |A| |B| + |beta C| + |bias|)` with `gamma(j) = j u / (1 - j u)`, u = 2^-24
/// ([`reference::gemm_bound`](crate::reference::gemm_bound)). NaN and infinities go through as IEEE
/// arithmetic has them. That is [`Precision::Strict`], the default; [`precision`](Self::precision) asks for less, or for
/// the same by other hardware. Same device, same inputs, same variant and tile: same bits; but not with
/// `split-k-atomic`, which adds in any order, is never chosen by `auto`, and is ruled out by
/// [`deterministic`](Gemm::deterministic).
///
/// # Cost
/// 2 m n k flop; a, b and bias read once, C written once, and read once if `beta` is not 0. Work above a
/// fixed number of flop a dispatch is cut into several, so that none takes long enough for a watchdog. No
/// scratch, but for k above 2^20 (2^13 on processors): 4 m n bytes; `split-k` takes as much for each slice of
/// k, `split-k-atomic` once, and both have a second pass over C. `coop` takes 2 bytes for each element of a factor
/// that is of f32, or whose rows are not whole numbers of eight elements, or has an inner extent that is not, and
/// copies it there first; with [`Precision::Split`] 4 bytes, after a pass that reads the factor for its powers of two.
///
/// # Variants
/// The ladder of a matrix product, each step with one idea more: `naive`; `tiled` (workgroup memory);
/// `coarsened` (several tiles of columns for an invocation); `register-direct` (sums in registers, A
/// straight from storage); `register` (both factors staged); `double` (two tiles in workgroup memory, loads
/// ahead of use); `split-k` (k split over workgroups, sums added by a second pass) and `split-k-atomic` (added
/// by compare-exchange). `coop`, on cooperative matrices, rounds factors to f16 if they are not of it, or splits
/// them: see [`Precision`]. `auto`, the default, chooses by shape and device, and `coop` for a
/// [`precision`](Self::precision) that it alone has. [`tile`](Self::tile),
/// [`thread_tile`](Self::thread_tile), [`slices`](Self::slices) and [`unrolled`](Self::unrolled) set what a
/// variant leaves open.
///
/// # On CUDA
/// With the feature `cuda` the same descriptor plans on a `CudaGpu`, for f32, f16 and [`bf16`](half::bf16). Factors of 16
/// bits are multiplied by tensor cores, those of f32 with [`Precision::Tensor`] or [`Precision::Split`]; these and bf16 need
/// sm_80. Extents go up to 2^31 - 1024. A leading dimension or stride that is no multiple of 16 bytes makes
/// copies slower, most of all one of an odd number of 2-byte elements. Variants: `fma`, `wmma` and `mma`, whose
/// [`tile`](Self::tile) is that of a block of threads and whose [`thread_tile`](Self::thread_tile) that of a warp, in
/// multiples of 16, without scratch; and on Hopper `wgmma`, which has tiles of its own, and copies to scratch first what
/// Hopper does not read as it is: a factor with rows of no whole pieces of 16 bytes, one of f32 whose inner extent is not
/// innermost in memory, and both where they are split.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): a leading dimension below the row length, a tile
/// or thread tile that the variant does not have, an unknown variant. [`TooLarge`](crate::ErrorKind::TooLarge): an operand above 2^32 - 1
/// elements, or above the largest binding or buffer of the device; a tile above its workgroup limits.
/// [`Unsupported`](crate::ErrorKind::Unsupported): `f16` on a device without SHADER_F16; a precision but
/// [`Strict`](Precision::Strict) on one without cooperative matrices of f16 with sums of f32.
/// `InvalidArgument` too: a precision that the variant or the type of the factors has not.
///
/// # Algorithm
/// `shaders/dense/gemm_naive.wgsl`: the definition. `shaders/dense/gemm_tiled.wgsl`: tiles in workgroup
/// memory (Kirk and Hwu, *Programming Massively Parallel Processors*), as `gemm_coarsened.wgsl`.
/// `gemm_register_direct.wgsl`: Volkov and Demmel, *Benchmarking GPUs to tune dense linear algebra*, 2008.
/// `gemm_register.wgsl` and `gemm_double.wgsl`, in the way of Nath, Tomov and Dongarra, *An
/// improved MAGMA GEMM for Fermi GPUs*, 2010; `gemm_slabs.wgsl` adds up slices of k. `gemm_coop.wgsl`
/// multiplies on cooperative matrices; `gemm_pack.wgsl` copies factors for it and `gemm_scales.wgsl` finds powers of two;
/// the split is that of Ootomo and Yokota, 2022. On CUDA `shaders/dense/gemm_wmma.cu`
/// and `gemm_wgmma.cu`.
///
/// # Example
/// ```
/// use tilework::dense::{Activation, Gemm};
/// use tilework::program::{DeviceProfile, Op};
///
/// // A fully connected layer: 64 samples of 784 features, weights stored 128 x 784.
/// let layer = Gemm::new(64, 128, 784).trans_b(true).activation(Activation::Relu).with_bias();
/// let program = Op::<f32>::lower(&layer, &DeviceProfile::webgpu_defaults())?;
/// assert_eq!(program.operands[1].len, 128 * 784);
/// assert_eq!(program.cost.flop, 2.0 * 64.0 * 128.0 * 784.0);
///
/// // The same with features and weights in half precision, sums and results not.
/// use half::f16;
/// use tilework::DType;
/// let mixed = Op::<f16>::lower(&layer.mixed_precision(), &DeviceProfile::h100())?;
/// let types: Vec<_> = mixed.operands.iter().map(|o| (o.name, o.dtype)).collect();
/// assert_eq!(types, [("a", DType::F16), ("b", DType::F16), ("bias", DType::F32), ("c", DType::F32)]);
///
/// // A bias for each of the 64 rows, as where samples are columns.
/// let rows = Gemm::new(64, 128, 784).with_row_bias();
/// assert_eq!(Op::<f32>::lower(&rows, &DeviceProfile::h100())?.operands[2].len, 64);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Gemm {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(crate) trans_a: bool,
    pub(crate) trans_b: bool,
    pub(crate) activation: Activation,
    /// Whether there is a bias.
    pub(crate) bias: bool,
    /// Whether a bias has an element for each row of C, instead of each column.
    pub(crate) row_bias: bool,
    /// Whether the bias and C are of f32, whatever A and B are of.
    pub(crate) mixed: bool,
    lda: Option<usize>,
    ldb: Option<usize>,
    ldc: Option<usize>,
    pub(crate) tile: Option<Tile>,
    pub(crate) thread: Option<[u32; 2]>,
    slices: Option<u32>,
    unrolled: bool,
    vectors: Option<bool>,
    pub(crate) precision: Precision,
    fresh_sums: bool,
    deterministic: bool,
    pub(crate) variant: String,
}

/// Types of the elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Types {
    /// Of A and B.
    pub(crate) factors: DType,
    /// Of the bias and C.
    pub(crate) result: DType,
}

impl Types {
    /// One for all.
    pub(crate) fn all(dtype: DType) -> Self {
        Self { factors: dtype, result: dtype }
    }

    /// Factors of f16 for a result of f32.
    pub(crate) const MIXED: Self = Self { factors: DType::F16, result: DType::F32 };
}

/// Sides of the tiles: `m` x `n` of C, `k` of the inner extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    pub(crate) m: u32,
    pub(crate) n: u32,
    pub(crate) k: u32,
}

/// Where a matrix lies in its operand: stored rows, their length, and the distance between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) ld: usize,
}

impl Layout {
    /// Elements from the first to the last of the matrix `operand`.
    pub(crate) fn span(self, name: &str, operand: &str) -> Result<usize> {
        let Self { rows, cols, ld } = self;
        if ld < cols {
            return Err(err!(
                InvalidArgument,
                "{name}: ld{operand} = {ld} is below {cols}, the length of a row of {operand} ({rows} x {cols} \
                 as stored); a leading dimension counts the elements from one row to the next"
            ));
        }
        if rows == 0 || cols == 0 {
            return Ok(0);
        }
        // All rows but the last have their full distance: what is behind the last one is not touched.
        Ok(elements(name, operand, &[rows, ld])? - (ld - cols))
    }

    /// Whether rows are whole numbers of four elements.
    pub(super) fn fours(self) -> bool {
        self.ld.is_multiple_of(4) && self.cols.is_multiple_of(4)
    }
}

kernel_params! {
    /// Of every kernel of the product, and of those of a batch.
    pub(crate) struct Params {
        m: u32,
        n: u32,
        k: u32,
        lda: u32,
        ldb: u32,
        ldc: u32,
        first_tile: u32,
        tiles: u32,
        tiles_n: u32,
        first_k: u32,
        end_k: u32,
        slice_k: u32,
        slices: u32,
        alpha: f32,
        beta: f32,
        batch: u32,
        stride_a: u32,
        stride_b: u32,
        stride_c: u32,
    }
}

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "one invocation reads a row of A and a column of B for one element of C"),
    Variant::portable(
        "tiled",
        "a workgroup shares tiles of A and B through workgroup memory; sides are free (tile)",
    ),
    Variant::portable("coarsened", "one invocation computes 2 or 4 tiles of columns of its row"),
    Variant::portable(
        "register-direct",
        "sums in registers, A read straight into one: loads of A do not coalesce, the baseline of what follows",
    ),
    Variant::portable("register", "sums in registers, tiles of both factors staged through workgroup memory"),
    Variant::portable(
        "double",
        "the same with two tiles in workgroup memory, the next one on its way meanwhile",
    ),
    Variant::portable(
        "split-k",
        "k split over workgroups, each slice to a slab of scratch; a pass adds them up",
    ),
    Variant::portable(
        "split-k-atomic",
        "k split over workgroups, which add to one slab by compare-exchange; rounding varies, never automatic",
    )
    .in_any_order(),
    Variant {
        name: "coop",
        about: "cooperative matrices of f16 with sums of f32: Precision::Tensor, or Split where that is asked for",
        requires: Requires { f16: true, cooperative: true, ..Requires::NOTHING },
        // naga has cooperative matrices for no other that has 16 x 16; Tint and WGSL proper have none.
        translations: &[Translation::SpirV],
        any_order: false,
    },
];

/// Elements of C of a workgroup of the passes that only end a product: 16 x 16.
const END_SIDE: u32 = 16;

/// The longest slice of k in one dispatch. An invocation walks through it alone, at about a
/// microsecond a tile of 16 at worst on a GPU: some 0.1 s.
fn slice_k(profile: &DeviceProfile) -> usize {
    // Tiles take up to 6 rounds for each step of k (a coarsened tile of 1 x 4 x 64 is the worst).
    profile.loop_steps(6, 1 << 20) as usize
}

/// The most flop of one dispatch: a small part of a second, where watchdogs wait for two or more.
pub(crate) fn dispatch_flop(class: DeviceClass) -> u64 {
    match class {
        DeviceClass::Discrete => 1 << 38,
        DeviceClass::Integrated => 1 << 35,
        DeviceClass::Virtual | DeviceClass::Cpu | DeviceClass::Unknown => 1 << 33,
    }
}

impl Gemm {
    /// The product of an m x k and a k x n matrix.
    pub fn new(m: usize, n: usize, k: usize) -> Self {
        Self {
            m,
            n,
            k,
            alpha: 1.0,
            beta: 0.0,
            trans_a: false,
            trans_b: false,
            activation: Activation::None,
            bias: false,
            row_bias: false,
            mixed: false,
            lda: None,
            ldb: None,
            ldc: None,
            tile: None,
            thread: None,
            slices: None,
            unrolled: true,
            vectors: None,
            precision: Precision::Strict,
            fresh_sums: false,
            deterministic: false,
            variant: "auto".into(),
        }
    }

    /// Factor of the product; 1 by default. With 0, `a` and `b` are not read.
    #[must_use]
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    /// Factor of what `c` holds before; 0 by default, and `c` is then not read.
    #[must_use]
    pub fn beta(mut self, beta: f32) -> Self {
        self.beta = beta;
        self
    }

    /// Whether `a` is stored transposed, k x m; false by default.
    #[must_use]
    pub fn trans_a(mut self, trans: bool) -> Self {
        self.trans_a = trans;
        self
    }

    /// Whether `b` is stored transposed, n x k; false by default.
    #[must_use]
    pub fn trans_b(mut self, trans: bool) -> Self {
        self.trans_b = trans;
        self
    }

    /// The function applied last; [`Activation::None`] by default.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Elements from one stored row of `a` to the next; its row length by default.
    #[must_use]
    pub fn lda(mut self, lda: usize) -> Self {
        self.lda = Some(lda);
        self
    }

    /// Elements from one stored row of `b` to the next; its row length by default.
    #[must_use]
    pub fn ldb(mut self, ldb: usize) -> Self {
        self.ldb = Some(ldb);
        self
    }

    /// Elements from one row of `c` to the next; n by default.
    #[must_use]
    pub fn ldc(mut self, ldc: usize) -> Self {
        self.ldc = Some(ldc);
        self
    }

    /// Sides of the tiles: a workgroup computes `tile_m` x `tile_n` elements of C, `tile_k` steps of k at a
    /// time; by default what suits the device, the shape and the variant. Asking for a tile makes `auto` choose
    /// `tiled`.
    ///
    /// Within the device's limits the sides are free for `naive` (which ignores the last) and `tiled`, with
    /// one invocation for each element of the tile. For `coarsened` `tile_n` is a multiple of 2; for
    /// `register-direct` it is 16 and `tile_m` a multiple of 8; in the other variants sides are multiples of those of the
    /// [`thread_tile`](Self::thread_tile), and `tile_k` of 4; for `coop` `tile_k` is a multiple of the side of a
    /// cooperative matrix, 16 or 8, and the invocations must be able to share the loads evenly.
    #[must_use]
    pub fn tile(mut self, tile_m: u32, tile_n: u32, tile_k: u32) -> Self {
        self.tile = Some(Tile { m: tile_m, n: tile_n, k: tile_k });
        self
    }

    /// Rows and columns of C that one invocation computes, or a subgroup for `coop`; by default what suits the tile.
    /// Asking for it makes `auto` choose `double`.
    ///
    /// Multiples of 4 up to 16 in the variants with sums in registers; 1 x 2 or 1 x 4 for `coarsened`, 1 x 16
    /// for `register-direct`, 1 x 1 for the first two; multiples of the side of a cooperative matrix for `coop`. Large
    /// ones make long kernels, which software drivers take seconds to compile.
    #[must_use]
    pub fn thread_tile(mut self, rows: u32, columns: u32) -> Self {
        self.thread = Some([rows, columns]);
        self
    }

    /// Slices that `split-k` and `split-k-atomic` cut k into, at the most; by default as many as fill the
    /// device. Other variants ignore it.
    #[must_use]
    pub fn slices(mut self, slices: u32) -> Self {
        self.slices = Some(slices);
        self
    }

    /// Whether the kernels with sums in registers have the steps of k in a tile written out, rather than in a
    /// loop; true by default.
    #[must_use]
    pub fn unrolled(mut self, unrolled: bool) -> Self {
        self.unrolled = unrolled;
        self
    }

    /// Whether the kernels with sums in registers have workgroup memory made of vectors; for tests of both and
    /// for measurements. By default on Vulkan, where a component is stored without the rest.
    #[doc(hidden)]
    #[must_use]
    pub fn workgroup_vectors(mut self, vectors: bool) -> Self {
        self.vectors = Some(vectors);
        self
    }

    /// How exact the sums are; [`Precision::Strict`] by default. The others make `auto` choose `coop`, and need a device
    /// with cooperative matrices.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Whether `coop` sums each step of k apart and adds that to C in f32, as [`Precision::Split`] always has it; for
    /// measurements.
    #[doc(hidden)]
    #[must_use]
    pub fn fresh_sums(mut self, fresh: bool) -> Self {
        self.fresh_sums = fresh;
        self
    }

    deterministic!(deterministic);

    /// Runs the variant of this name instead of `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.variant);
        self
    }

    /// Adds a bias for each column of C: an operand `bias` of n elements, which plans take by `with_bias`.
    #[must_use]
    pub fn with_bias(mut self) -> Self {
        (self.bias, self.row_bias) = (true, false);
        self
    }

    /// Adds a bias for each row of C: an operand `bias` of m elements, which plans take by `with_bias`.
    #[must_use]
    pub fn with_row_bias(mut self) -> Self {
        (self.bias, self.row_bias) = (true, true);
        self
    }

    /// Keeps the bias and C in `f32` where A and B are of 16 bits, so that sums are not rounded again. Plan it as a
    /// product of `f16`.
    #[must_use]
    pub fn mixed_precision(mut self) -> Self {
        self.mixed = true;
        self
    }

    /// Every way to run it.
    pub fn variants() -> &'static [Variant] {
        VARIANTS
    }

    /// Where `a` is stored.
    pub(crate) fn layout_a(&self) -> Layout {
        let (rows, cols) = if self.trans_a { (self.k, self.m) } else { (self.m, self.k) };
        Layout { rows, cols, ld: self.lda.unwrap_or(cols) }
    }

    /// Where `b` is stored.
    pub(crate) fn layout_b(&self) -> Layout {
        let (rows, cols) = if self.trans_b { (self.n, self.k) } else { (self.k, self.n) };
        Layout { rows, cols, ld: self.ldb.unwrap_or(cols) }
    }

    /// Where `c` is stored.
    pub(crate) fn layout_c(&self) -> Layout {
        Layout { rows: self.m, cols: self.n, ld: self.ldc.unwrap_or(self.n) }
    }

    /// The shape, for texts.
    pub(crate) fn name(&self) -> String {
        format!("gemm {} x {} x {}", self.m, self.n, self.k)
    }

    /// Types of the operands of a product that is planned for `dtype`.
    pub(crate) fn types(&self, name: &str, dtype: DType) -> Result<Types> {
        match (self.mixed, dtype) {
            (false, _) => Ok(Types::all(dtype)),
            (true, DType::F16 | DType::Bf16) => Ok(Types { factors: dtype, result: DType::F32 }),
            (true, _) => Err(err!(
                Unsupported,
                "{name}: mixed precision multiplies factors of 16 bits, not {dtype}; plan it for f16, or leave it out"
            )),
        }
    }

    fn lower_as(&self, types: Types, bias: bool, profile: &DeviceProfile) -> Result<Program> {
        let name = self.name();
        let Types { factors, result } = types;
        let f16 = factors == DType::F16;
        if let Some(missing) = (Requires { f16, ..Requires::NOTHING }).missing(profile) {
            return Err(err!(
                Unsupported,
                "{name}: elements of f16 need {missing}, which {} does not have; convert them to f32",
                profile.name
            ));
        }
        let mut operands = vec![
            self.matrix("a", self.layout_a(), factors, Access::Read)?,
            self.matrix("b", self.layout_b(), factors, Access::Read)?,
        ];
        if bias {
            operands.push(Operand {
                name: "bias",
                dtype: result,
                len: self.bias_len(),
                access: Access::Read,
            });
        }
        operands.push(self.matrix("c", self.layout_c(), result, Access::ReadWrite)?);
        for operand in &operands {
            check_operand(&name, operand, profile, "compute C in blocks of rows and columns, a call each")?;
        }
        self.check_precision(factors, profile)?;
        let bits = Bits { rounds: true, deterministic: self.deterministic };
        let (variant, mut decision) =
            choose_with("gemm", &self.variant, VARIANTS, profile, bits, || policy::variant(self, profile))?;
        match self.precision_of(variant.name) {
            Precision::Strict => {}
            Precision::Split => decision.because("each element of A and B is split into two of f16"),
            Precision::Tensor if f16 => {}
            Precision::Tensor => decision.because("A and B are rounded to f16"),
        }
        let work = self.work(variant.name, types, bias, profile)?;
        if let Some(measured) = work.measured {
            let Division { tile: Tile { m, n, k }, thread: [rows, columns] } = work.division;
            decision.because(format_args!("tile {m} x {n} x {k} by {rows} x {columns}, {measured}"));
        }

        let product = self.k > 0 && self.alpha != 0.0;
        if !product {
            let zero = if self.k == 0 { "k" } else { "alpha" };
            decision.because(format_args!("{zero} is 0, so A and B are not read"));
        }
        let mut program = Program::new("gemm", decision);
        program.cost = self.cost(types, bias, product);
        program.traffic = product.then(|| self.traffic(program.cost, &work, factors));
        program.operands = operands;
        if self.m > 0 && self.n > 0 {
            let job = Job { program: &mut program, profile, work, bias };
            if product { self.product(job)? } else { self.scale(job)? }
        }
        Ok(program)
    }

    /// Whether there is a variant of the precision that was asked for.
    fn check_precision(&self, factors: DType, profile: &DeviceProfile) -> Result<()> {
        let (name, precision) = (self.name(), self.precision.name());
        if self.precision == Precision::Strict {
            return Ok(());
        }
        if !matches!(self.variant.as_str(), "auto" | "coop") {
            return Err(err!(
                InvalidArgument,
                "{name}: `{}` computes in f32, which is Precision::Strict; {precision} is what `coop` has: take that, or \
                 `auto`",
                self.variant
            ));
        }
        if self.precision == Precision::Split && factors == DType::F16 {
            return Err(err!(
                InvalidArgument,
                "{name}: {precision} splits elements of f32 into two of f16, and A and B are of f16 already; take \
                 Precision::Tensor, which multiplies those as they are"
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

    /// Bytes that workgroups ask of memory: a tile of C reads its rows of A and its columns of B.
    fn traffic(&self, cost: Cost, work: &Work, dtype: DType) -> f64 {
        let Tile { m, n, .. } = work.division.tile;
        let (rows, columns) = if work.variant == "naive" { (1, 1) } else { (m.into(), n.into()) };
        let product = Matmul { m: self.m as u64, n: self.n as u64, k: self.k as u64 };
        let once = product.elements_read(product.m, product.n) as f64;
        cost.bytes + (product.elements_read(rows, columns) as f64 - once) * dtype.size() as f64
    }

    /// The operand that holds a matrix.
    pub(crate) fn matrix(
        &self,
        operand: &'static str,
        at: Layout,
        dtype: DType,
        access: Access,
    ) -> Result<Operand> {
        Ok(Operand { name: operand, dtype, len: at.span(&self.name(), operand)?, access })
    }

    /// The division of C that was asked for, or that suits; checked.
    fn work(&self, variant: &'static str, types: Types, bias: bool, profile: &DeviceProfile) -> Result<Work> {
        let (suits, measured) = policy::division(variant, self, profile);
        let tile = self.tile.unwrap_or(suits.tile);
        let asked = self.tile.is_some() || self.thread.is_some();
        let thread = self.thread.unwrap_or_else(|| match self.tile {
            Some(tile) => policy::thread_of(variant, tile),
            None => suits.thread,
        });
        let division = Division { tile, thread };
        let vectors = self.vectors.unwrap_or(!profile.quirks.stores_whole_vectors);
        let sliced = variant.starts_with("split-k") || self.k > slice_k(profile);
        let measured = measured.filter(|_| !asked);
        let mut work = Work { variant, division, vectors, measured, coop: None, sliced };
        if variant == "coop" {
            let form = self.coop_form(division, types, bias, profile);
            self.check_coop(&form, profile)?;
            work.coop = Some(form);
        } else {
            self.check_division(&work, profile)?;
        }
        Ok(work)
    }

    fn check_division(&self, work: &Work, profile: &DeviceProfile) -> Result<()> {
        let Division { tile: Tile { m, n, k }, thread: [rows, columns] } = work.division;
        let name = format!("{}: the tile {m} x {n} x {k}", self.name());
        if m == 0 || n == 0 || k == 0 {
            return Err(err!(InvalidArgument, "{name} has a side of 0; sides are at least 1"));
        }
        let variant = work.variant;
        let four = |x: u32| x.is_multiple_of(4) && (4..=16).contains(&x);
        let (right, has) = match variant {
            "naive" | "tiled" => ([rows, columns] == [1, 1], "1 x 1"),
            "coarsened" => (rows == 1 && (columns == 2 || columns == 4), "1 x 2 or 1 x 4"),
            "register-direct" => ([rows, columns] == [1, 16], "1 x 16"),
            _ => (four(rows) && four(columns), "multiples of 4 up to 16 by such"),
        };
        if !right {
            return Err(err!(
                InvalidArgument,
                "{}: an invocation of `{variant}` cannot compute {rows} x {columns} elements of C; the thread tiles \
                 of this variant are {has}",
                self.name()
            ));
        }
        if m % rows != 0 || n % columns != 0 {
            return Err(err!(
                InvalidArgument,
                "{name} is not made of whole thread tiles of {rows} x {columns}, which `{variant}` needs; take \
                 multiples of them"
            ));
        }
        // Fewer rows would load too much of B each: see `slice_k`.
        if variant == "register-direct" && (n != columns || m % 8 != 0) {
            return Err(err!(
                InvalidArgument,
                "{name} is none of `{variant}`: it has 16 columns and a multiple of 8 rows"
            ));
        }
        if work.is_register() && k % 4 != 0 {
            return Err(err!(
                InvalidArgument,
                "{name}: for `{variant}` its last side must be a multiple of 4"
            ));
        }
        let limits = &profile.limits;
        let invocations = work.division.invocations();
        let [max_x, max_y, _] = limits.max_workgroup_size;
        let [x, y] = match variant {
            "naive" | "tiled" | "coarsened" => [u64::from(n / columns), u64::from(m)],
            _ => [invocations, 1],
        };
        if invocations > limits.max_invocations.into() || x > max_x.into() || y > max_y.into() {
            return Err(err!(
                TooLarge,
                "{name} wants a workgroup of {x} x {y} = {invocations} invocations; {} allows {} in all, {max_x} \
                 along x and {max_y} along y; take smaller sides",
                profile.name,
                limits.max_invocations
            ));
        }
        let [m, n, k] = [m, n, k].map(u64::from);
        let bytes = match variant {
            "naive" => 0,
            "tiled" | "coarsened" => {
                let pitch_b = if self.trans_b { n | 1 } else { n };
                4 * k * (m + pitch_b)
            }
            "register-direct" => 4 * k * n,
            _ => self.form(work).workgroup_bytes(),
        };
        if bytes > u64::from(limits.max_workgroup_bytes) {
            return Err(err!(
                TooLarge,
                "{name} wants {bytes} bytes of workgroup memory; {} has {}; take smaller sides",
                profile.name,
                limits.max_workgroup_bytes
            ));
        }
        Ok(())
    }

    fn check_coop(&self, form: &CoopForm, profile: &DeviceProfile) -> Result<()> {
        let Tile { m, n, k } = form.tile;
        let name = format!("{}: the tile {m} x {n} x {k} of `coop`", self.name());
        if let Some(wrong) = form.wrong() {
            return Err(err!(InvalidArgument, "{name}: {wrong}"));
        }
        let limits = &profile.limits;
        let most = limits.max_invocations.min(limits.max_workgroup_size[0]);
        let (invocations, bytes) = (form.invocations(), form.workgroup_bytes());
        if invocations > most.into() || bytes > limits.max_workgroup_bytes.into() {
            return Err(err!(
                TooLarge,
                "{name} wants {invocations} invocations and {bytes} bytes of workgroup memory; {} allows {most} and {}; \
                 take smaller sides",
                profile.name,
                limits.max_workgroup_bytes
            ));
        }
        Ok(())
    }

    /// What a register-tiled kernel is specialised for.
    fn form(&self, work: &Work) -> Form {
        let Division { tile, thread } = work.division;
        Form {
            tile,
            thread,
            double: work.variant != "register",
            unrolled: self.unrolled,
            vectors: work.vectors,
            trans_a: self.trans_a,
            trans_b: self.trans_b,
            vec_a: self.layout_a().fours(),
            vec_b: self.layout_b().fours(),
            steps: if work.sliced { Steps::Any } else { Steps::of(self.k, tile) },
            products: None,
            bytes: false,
            walked: None,
        }
    }

    /// Elements of a bias.
    pub(crate) fn bias_len(&self) -> usize {
        if self.row_bias { self.m } else { self.n }
    }

    pub(crate) fn cost(&self, types: Types, bias: bool, product: bool) -> Cost {
        let [m, n, k] = [self.m as f64, self.n as f64, if product { self.k as f64 } else { 0.0 }];
        let read_c = if self.beta == 0.0 { 0.0 } else { m * n };
        let any = self.m > 0 && self.n > 0;
        let bias = if bias && any { self.bias_len() as f64 } else { 0.0 };
        let factors = if any { m * k + k * n } else { 0.0 };
        let [of_factor, of_result] = [types.factors, types.result].map(|dtype| dtype.size() as f64);
        Cost { flop: 2.0 * m * n * k, bytes: factors * of_factor + (read_c + bias + m * n) * of_result }
    }

    /// The parameters of all launches; `tile` is that of their grid.
    pub(super) fn params(&self, k: usize, tile: Tile) -> Result<Params> {
        let name = self.name();
        let ld = |what, at: Layout| index_u32(&name, what, at.ld);
        tiles(&name, "m", self.m, tile.m)?;
        tiles(&name, "k", k, tile.k)?;
        Ok(Params {
            m: self.m as u32,
            n: self.n as u32,
            k: k as u32,
            lda: ld("lda", self.layout_a())?,
            ldb: ld("ldb", self.layout_b())?,
            ldc: ld("ldc", self.layout_c())?,
            first_tile: 0,
            tiles: 0,
            tiles_n: tiles(&name, "n", self.n, tile.n)?,
            first_k: 0,
            end_k: 0,
            slice_k: 0,
            slices: 1,
            alpha: if k > 0 { self.alpha } else { 0.0 },
            beta: self.beta,
            batch: 1,
            stride_a: 0,
            stride_b: 0,
            stride_c: 0,
        })
    }

    /// C = activation(beta C + bias).
    fn scale(&self, mut job: Job<'_>) -> Result<()> {
        let spec = self.end_spec(&job, 1, false);
        let kernel = job.program.kernel(Kernel::library("dense/gemm_scale", "gemm_scale", spec));
        let bindings = job.operands(2);
        let params = self.params(0, END_TILE)?;
        job.bands(kernel, &params, &bindings, END_TILE, self, 1)
    }

    fn product(&self, mut job: Job<'_>) -> Result<()> {
        if let Some(form) = job.work.coop {
            return self.coop_product(job, form);
        }
        if matches!(job.work.variant, "split-k" | "split-k-atomic") {
            return self.split_product(job);
        }
        let tile = job.work.division.tile;
        let slice_k = slice_k(job.profile);
        let carry = self.k > slice_k;
        let params = self.params(self.k, tile)?;
        let mut spec = self.end_spec(&job, 3, carry);
        let register = job.work.is_register();
        if register || job.work.variant == "register-direct" {
            spec = spec.flag("VEC_C", register && self.layout_c().fours());
            spec = spec.flag("WHOLE_TILES", register && self.form(&job.work).divides(self.m, self.n));
        }
        let kernel = job.program.kernel(self.kernel(&job.work, spec));
        let mut bindings = job.operands(0);
        if carry {
            bindings.push(job.program.scratch(self.sums_bytes(1, job.profile)?));
        }
        for first_k in (0..self.k).step_by(slice_k) {
            let end_k = self.k.min(first_k + slice_k);
            let params = Params { first_k: first_k as u32, end_k: end_k as u32, ..params };
            job.bands(kernel, &params, &bindings, tile, self, 1)?;
        }
        Ok(())
    }

    /// k split over workgroups: their sums to scratch, then the end in a pass of its own.
    fn split_product(&self, mut job: Job<'_>) -> Result<()> {
        let Division { tile, .. } = job.work.division;
        let atomic = job.work.variant == "split-k-atomic";
        let wanted = match self.slices {
            Some(slices) => (slices as usize).clamp(1, self.k),
            None => policy::slices(job.work.division, self, job.profile),
        };
        // Slabs that one binding holds; a slice no longer than a dispatch may take.
        let slab = self.sums_bytes(1, job.profile)?;
        let slabs = if atomic { u64::MAX } else { job.profile.limits.max_storage_binding / slab };
        // A count of workgroups that is an index, too; and a loop that every driver runs to its end.
        let most = slabs.min((1 << 31) / job.work.division.tiles(self)).clamp(1, 1 << 15) as usize;
        let longest = slice_k(job.profile);
        let slice = self.k.div_ceil(wanted.min(most)).next_multiple_of(tile.k as usize).min(longest);
        let slices = self.k.div_ceil(slice);
        let bytes = if atomic { slab } else { self.sums_bytes(slices, job.profile)? };
        let params = Params {
            slice_k: slice as u32,
            end_k: self.k as u32,
            slices: if atomic { 1 } else { slices as u32 },
            ..self.params(self.k, tile)?
        };
        let sums = job.program.scratch(bytes);
        let end = self.params(self.k, END_TILE)?;
        if atomic {
            job.program.determinism = Determinism::RoundingVaries;
            let spec = Spec::new().constant("TILE_M", END_SIDE).constant("TILE_N", END_SIDE);
            let kernel = job.program.kernel(Kernel::library("dense/gemm_clear", "gemm_clear", spec));
            job.bands(kernel, &end, &[sums], END_TILE, self, 1)?;
        }

        let fragment = if atomic { "dense/gemm_end_atomic" } else { "dense/gemm_end_slab" };
        let mut spec = job.type_spec().flag("SPLIT", true).slot("end", Fragment::Library(fragment));
        if !atomic {
            spec = spec.flag("FOURS", self.n.is_multiple_of(4));
        }
        let kernel = job.program.kernel(self.kernel(&job.work, spec));
        let mut bindings = job.operands(0);
        bindings.truncate(2);
        bindings.push(sums);
        job.bands(kernel, &params, &bindings, tile, self, slices)?;

        let spec = self.end_spec(&job, 2, false);
        let kernel = job.program.kernel(Kernel::library("dense/gemm_slabs", "gemm_slabs", spec));
        let mut bindings = vec![sums];
        bindings.extend(job.operands(2));
        job.bands(kernel, &Params { slices: params.slices, ..end }, &bindings, END_TILE, self, 1)
    }

    /// Bytes of `slices` times m x n sums in f32: twice an f16 C each.
    fn sums_bytes(&self, slices: usize, profile: &DeviceProfile) -> Result<u64> {
        let bytes = 4 * (self.m as u64).saturating_mul(self.n as u64).saturating_mul(slices as u64);
        if bytes <= profile.limits.max_storage_binding {
            return Ok(bytes);
        }
        Err(err!(
            TooLarge,
            "{}: the sums of its slices of k need {bytes} bytes of scratch, above the {} bytes of the largest storage \
             binding of {}; compute C in blocks of rows and columns, a call each",
            self.name(),
            profile.limits.max_storage_binding,
            profile.name
        ))
    }

    /// The spec of a kernel that ends in C, whose bias or C is bound at `next`; then come C and, with `carry`,
    /// the sums that are carried.
    fn end_spec(&self, job: &Job<'_>, next: u32, carry: bool) -> Spec {
        let c = next + u32::from(job.bias);
        job.type_spec()
            .alias("R", if job.program.operands[2].dtype == DType::F16 { "f16" } else { "f32" })
            .flag("BIAS", job.bias)
            .flag("ROW_BIAS", job.bias && self.row_bias)
            .flag("CARRY", carry)
            .flag("READ_C", self.beta != 0.0)
            .constant("BIAS_BINDING", next)
            .constant("C_BINDING", c)
            .constant("PARTIAL_BINDING", c + 1)
            .constant("TILE_M", END_SIDE)
            .constant("TILE_N", END_SIDE)
            .slot("activation", Fragment::Library(self.activation.fragment()))
    }

    /// The kernel that multiplies.
    fn kernel(&self, work: &Work, spec: Spec) -> Kernel {
        let Division { tile, thread } = work.division;
        let spec = spec.constant("TILE_M", tile.m).constant("TILE_N", tile.n);
        let transposed = spec.clone().flag("TRANS_A", self.trans_a).flag("TRANS_B", self.trans_b);
        match work.variant {
            "naive" => Kernel::library("dense/gemm_naive", "gemm_naive", transposed),
            "tiled" => {
                let spec = transposed.constant("TILE_K", tile.k);
                Kernel::library("dense/gemm_tiled", "gemm_tiled", spec)
            }
            "coarsened" => {
                let spec = transposed.constant("TILE_K", tile.k).flag("FOUR", thread[1] == 4);
                Kernel::library("dense/gemm_coarsened", "gemm_coarsened", spec)
            }
            "register-direct" => {
                let spec = transposed.constant("TILE_K", tile.k);
                Kernel::library("dense/gemm_register_direct", "gemm_register_direct", spec)
            }
            _ => self.form(work).kernel(spec),
        }
    }
}

/// What passes that only end a product take: their invocations have an element of C each.
const END_TILE: Tile = Tile { m: END_SIDE, n: END_SIDE, k: 1 };

/// How a product runs.
struct Work {
    variant: &'static str,
    division: Division,
    /// Whether workgroup memory of register-tiled kernels is made of vectors.
    vectors: bool,
    /// Where the division was measured, if the policy chose it.
    measured: Option<&'static str>,
    /// What a kernel on cooperative matrices is written for.
    coop: Option<CoopForm>,
    /// Whether dispatches take slices of k, whose numbers of steps differ.
    sliced: bool,
}

impl Work {
    /// Whether the kernel is one of [`register`].
    fn is_register(&self) -> bool {
        matches!(self.variant, "register" | "double" | "split-k" | "split-k-atomic")
    }
}

/// A program that is being written.
struct Job<'a> {
    program: &'a mut Program,
    profile: &'a DeviceProfile,
    work: Work,
    bias: bool,
}

impl Job<'_> {
    /// Bindings of the operands from `first` on.
    fn operands(&self, first: usize) -> Vec<Binding> {
        let operands = &self.program.operands;
        (first..operands.len()).map(|i| Binding::operand(i, operands)).collect()
    }

    fn type_spec(&self) -> Spec {
        let f16 = self.program.operands[0].dtype == DType::F16;
        Spec::new().alias("T", if f16 { "f16" } else { "f32" }).flag("F16", f16)
    }

    /// Launches over all tiles, `slices` times each, in bands that take a bounded time.
    fn bands(
        &mut self,
        kernel: usize,
        params: &Params,
        bindings: &[Binding],
        tile: Tile,
        gemm: &Gemm,
        slices: usize,
    ) -> Result<()> {
        let steps = if params.slice_k > 0 { params.slice_k } else { params.end_k - params.first_k };
        let flop_per_tile = 2 * u64::from(tile.m) * u64::from(tile.n) * u64::from(steps.max(1));
        // At most 2^31 workgroups: the index of one in a folded grid stays below 2^32.
        let band = (dispatch_flop(self.profile.class) / flop_per_tile).clamp(1, 1 << 31);
        // No more tiles than elements of C or of the slabs: the count fits.
        let all_tiles = gemm.m.div_ceil(tile.m as usize) as u64 * u64::from(params.tiles_n) * slices as u64;
        for Range { start, end } in self.program.bands(all_tiles, band)? {
            let params = Params { first_tile: start as u32, tiles: (end - start) as u32, ..*params };
            self.program.dispatch(kernel, &params, bindings.to_vec(), Grid::fold(end - start));
        }
        Ok(())
    }
}

/// Tiles of `side` along an extent. A kernel counts to the end of the last one, which must be an index.
pub(crate) fn tiles(name: &str, what: &str, extent: usize, side: u32) -> Result<u32> {
    let end = round_up(extent as u64, u64::from(side));
    if end > u64::from(u32::MAX) {
        return Err(err!(
            TooLarge,
            "{name}: {what} = {extent}, {end} in whole tiles of {side}, is above 2^32 - 1, the largest index a \
             kernel has; split the work into smaller calls"
        ));
    }
    Ok((end / u64::from(side)) as u32)
}

/// Whether the device can hold and bind the whole operand, and a kernel index it.
pub(crate) fn check_operand(
    name: &str,
    operand: &Operand,
    profile: &DeviceProfile,
    advice: &str,
) -> Result<()> {
    index_u32(name, &format!("the number of elements of {}", operand.name), operand.len)?;
    let bytes = round_up(operand.bytes(), 4);
    let limits = &profile.limits;
    let limit = limits.max_buffer_size.min(limits.max_storage_binding);
    if bytes <= limit {
        return Ok(());
    }
    let what = if limit == limits.max_buffer_size { "buffer" } else { "storage binding" };
    Err(err!(
        TooLarge,
        "{name}: {} has {} elements of {}, {bytes} bytes, above the {limit} bytes of the largest {what} of {}; \
         {advice}",
        operand.name,
        operand.len,
        operand.dtype,
        profile.name
    ))
}

operands! {
    impl[T: Element,] Gemm, T [cuda] {
        fn record<C>(a: T, b: T, c: C);
        /// What is added to each column or row of C.
        optional with_bias<C>(bias: C);
    }
}

macro_rules! op {
    ($($t:ty),*) => {$(
        impl Op<$t> for Gemm {
            crate::program::proven!();

            fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
                self.lower_as(self.types(&self.name(), <$t>::DTYPE)?, self.bias, profile)
            }
        }
    )*};
}
op!(f32, f16);

/// What the catalogue knows of [`Gemm`].
pub(super) const INFO: Operation = Operation {
    name: "gemm",
    about: "C = activation(alpha op(A) op(B) + beta C + bias)",
    inputs: form::INPUTS,
    types: &[DType::F32, DType::F16],
    options: form::OPTIONS,
    make: Some(form::make),
    variants: Gemm::variants,
    samples,
    comparison: Some(Comparison::Sums),
    tiles: rows_of,
    facts,
    ..Operation::UNDECLARED
};

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    if variant == "coop" {
        return coop_samples(profile);
    }
    // Tiles that differ from variant to variant as little as they may, and shapes of which rows are whole
    // numbers of four or not.
    let tiled = |gemm: Gemm| match variant {
        "naive" | "tiled" => gemm.tile(8, 12, 5),
        "coarsened" => gemm.tile(8, 12, 5).thread_tile(1, 2),
        "register-direct" => gemm.tile(8, 16, 8),
        _ => gemm.tile(8, 16, 4).thread_tile(4, 8),
    };
    let new = |k| tiled(Gemm::new(33, 21, k).variant(variant));
    let mut samples = vec![(Gemm::new(64, 64, 64).variant(variant), true)];
    for (trans_a, trans_b) in [(false, false), (false, true), (true, false), (true, true)] {
        samples.push((new(41).trans_a(trans_a).trans_b(trans_b), true));
        let fours = tiled(Gemm::new(32, 24, 40).variant(variant));
        samples.push((fours.trans_a(trans_a).trans_b(trans_b).unrolled(!trans_a), false));
    }
    for activation in Activation::ALL {
        samples.push((new(40).activation(activation).beta(1.0), true));
    }
    for bias in [false, true] {
        samples.push((new(0).beta(1.0), bias));
        samples.push((tiled(Gemm::new(3, 2, slice_k(profile) + 1).variant(variant)), bias));
        samples.push((tiled(Gemm::new(3, 4, slice_k(profile) + 1).variant(variant)), bias));
    }
    samples.push((Gemm { row_bias: true, ..new(40) }, true));
    samples.push((tiled(Gemm { row_bias: true, ..Gemm::new(32, 24, 40).variant(variant) }), true));
    let mut types = vec![Types::all(DType::F32)];
    if profile.features.f16 {
        types.extend([Types::all(DType::F16), Types::MIXED]);
    }
    let mut programs = Vec::new();
    for types in types {
        for (gemm, bias) in &samples {
            programs.push(gemm.lower_as(types, *bias, profile)?);
        }
    }
    // Kernels of the size that the device gets by itself.
    for side in [256, 1 << 12] {
        programs.push(Gemm::new(side, side, 64).variant(variant).lower_as(
            Types::all(DType::F32),
            false,
            profile,
        )?);
    }
    Ok(programs)
}

fn coop_samples(profile: &DeviceProfile) -> Result<Vec<Program>> {
    let single = Types::all(DType::F32);
    let kinds = [
        (Precision::Tensor, single),
        (Precision::Split, single),
        (Precision::Tensor, Types::all(DType::F16)),
        (Precision::Tensor, Types::MIXED),
    ];
    let mut programs = Vec::new();
    for (precision, types) in kinds {
        let new = |m, n, k| Gemm::new(m, n, k).variant("coop").precision(precision);
        let mut samples = Vec::new();
        for (trans_a, trans_b) in [(false, false), (false, true), (true, false), (true, true)] {
            // In place and packed, of whole blocks and not, rows of C by fours and not.
            for (m, n, k) in [(64, 48, 96), (40, 24, 56), (33, 21, 41), (12, 20, 8)] {
                samples.push((new(m, n, k).trans_a(trans_a).trans_b(trans_b), false));
            }
        }
        samples.push((new(33, 20, 8).fresh_sums(true), false));
        for activation in Activation::ALL {
            samples.push((new(64, 64, 64).activation(activation).beta(1.0), true));
        }
        for bias in [false, true] {
            samples.push((new(16, 16, 0).beta(1.0), bias));
            samples.push((new(3, 2, slice_k(profile) + 1), bias));
        }
        samples.push((Gemm { row_bias: true, ..new(33, 21, 40) }, true));
        // Kernels of the size that the device gets by itself.
        samples.extend([1 << 10, 1 << 11, 1 << 12].map(|side| (new(side, side, 64), false)));
        for (gemm, bias) in samples {
            programs.push(gemm.lower_as(types, bias, profile)?);
        }
    }
    Ok(programs)
}

/// Elements of A and B that are loaded, against those of the definition.
fn facts(subject: &Subject<'_>) -> Option<Vec<Fact>> {
    let [m, n, k] = ["m", "n", "k"].map(|name| subject.param(name));
    let (m, n, k) = (m?, n?, k?);
    let once = (m * k + k * n) as f64;
    let loaded =
        (subject.program.traffic? - subject.program.cost.bytes) / subject.element_bytes() as f64 + once;
    let mut facts = vec![fact("reuse", 2.0 * (m * n * k) as f64 / loaded, "uses of an element loaded")];
    // How lanes lie in a tile of C, where each loads for itself.
    let (width, spec) = match subject.program.variant() {
        "naive" => subject.kernel("gemm_naive").map(|(k, i)| (u64::from(i.workgroup_size[0]), &k.spec))?,
        "register-direct" => subject.kernel("gemm_register_direct").map(|(k, _)| (1, &k.spec))?,
        _ => return Some(facts),
    };
    let trans_a = spec.is_set("TRANS_A");
    let lda = subject.param("lda")?;
    facts.push(subject.transactions("loads of A", |lane| {
        let row = (lane / width).min(m - 1);
        if trans_a { row } else { row * lda }
    }));
    if subject.program.variant() == "naive" {
        let (trans_b, ldb) = (spec.is_set("TRANS_B"), subject.param("ldb")?);
        facts.push(subject.transactions("loads of B", |lane| {
            let column = (lane % width).min(n - 1);
            if trans_b { column * ldb } else { column }
        }));
    }
    Some(facts)
}

#[cfg(test)]
mod tests {
    use super::policy::DEFAULT_TILE;
    use super::*;
    use crate::error::ErrorKind;
    use crate::program::{Limits, Resource};
    use crate::shader::{BindingKind, Target};

    fn lower(gemm: &Gemm, profile: &DeviceProfile) -> Result<Program> {
        Op::<f32>::lower(gemm, profile)
    }

    fn refusal(gemm: &Gemm, profile: &DeviceProfile) -> (ErrorKind, String) {
        let e = lower(gemm, profile).unwrap_err();
        (e.kind(), e.to_string())
    }

    /// The variants that a device runs.
    fn on(profile: &DeviceProfile) -> impl Iterator<Item = &'static Variant> {
        VARIANTS.iter().filter(|v| v.requires.missing(profile).is_none())
    }

    /// A device with more memory than any, so that only the width of an index is in the way.
    fn boundless() -> DeviceProfile {
        let limits = Limits { max_buffer_size: 1 << 50, max_storage_binding: 1 << 50, ..Limits::WEBGPU };
        DeviceProfile { limits, ..DeviceProfile::h100() }
    }

    #[test]
    fn every_sample_validates_and_agrees_with_its_program() {
        for profile in [DeviceProfile::webgpu_defaults(), DeviceProfile::mesa()] {
            for variant in on(&profile) {
                for program in samples(&profile, variant.name).unwrap() {
                    for dispatch in &program.dispatches {
                        let kernel = &program.kernels[dispatch.kernel];
                        let module = kernel.expand(Target::Naga).unwrap().validate().unwrap();
                        let interface = module.interface(kernel.entry).unwrap();
                        let fields: Vec<_> = interface.bindings[0]
                            .members
                            .iter()
                            .map(|m| (m.name.as_str(), m.offset as usize, m.size as usize))
                            .collect();
                        assert_eq!(fields, dispatch.fields, "{}", kernel.label());
                        assert_eq!(interface.bindings[0].min_size, dispatch.params.len() as u64);

                        let shown: Vec<_> =
                            interface.bindings[1..].iter().map(|b| (b.name.as_str(), b.kind)).collect();
                        let bound: Vec<_> = dispatch
                            .bindings
                            .iter()
                            .map(|b| match b.resource {
                                Resource::Operand(i) => match program.operands[i].access {
                                    Access::Read => (program.operands[i].name, BindingKind::Read),
                                    _ => (program.operands[i].name, BindingKind::ReadWrite),
                                },
                                Resource::Scratch(_) if kernel.entry == "gemm_slabs" => {
                                    ("slabs", BindingKind::Read)
                                }
                                Resource::Scratch(_) => ("partial", BindingKind::ReadWrite),
                                Resource::Constant(_) => ("table", BindingKind::Read),
                            })
                            .collect();
                        assert_eq!(shown, bound, "{}", kernel.label());
                    }
                }
            }
        }
    }

    #[test]
    fn workgroup_memory_is_what_the_check_counts() {
        for (tile, trans_b, bytes) in [
            ((16, 16, 16), false, 2048),
            ((16, 16, 16), true, 2112),
            ((4, 32, 8), true, 1184),
            ((3, 5, 7), true, 224),
            ((64, 4, 50), false, 13600),
        ] {
            let gemm = Gemm::new(9, 9, 99).tile(tile.0, tile.1, tile.2).trans_b(trans_b);
            let program = lower(&gemm, &DeviceProfile::webgpu_defaults()).unwrap();
            let module = program.kernels[0].expand(Target::Naga).unwrap().validate().unwrap();
            let interface = module.interface("gemm_tiled").unwrap();
            assert_eq!(interface.workgroup_bytes, bytes);
            assert_eq!(interface.workgroup_size, [tile.1, tile.0, 1]);
            let mut profile = DeviceProfile::webgpu_defaults();
            profile.limits.max_workgroup_bytes = bytes;
            assert!(lower(&gemm, &profile).is_ok());
            profile.limits.max_workgroup_bytes = bytes - 1;
            let (kind, text) = refusal(&gemm, &profile);
            assert_eq!(kind, ErrorKind::TooLarge);
            assert!(text.contains(&format!("{bytes} bytes of workgroup memory")), "{text}");
        }
    }

    #[test]
    fn auto_follows_device_and_shape() {
        let variant = |gemm: Gemm, profile: &DeviceProfile| lower(&gemm, profile).unwrap().variant();
        let square = Gemm::new(512, 512, 512);
        assert_eq!(variant(square.clone(), &DeviceProfile::h100()), "double");
        assert_eq!(variant(square.clone(), &DeviceProfile::webgpu_defaults()), "double");
        assert_eq!(variant(square.clone().thread_tile(8, 4), &DeviceProfile::mesa()), "double");
        assert_eq!(variant(Gemm::new(512, 512, 1 << 15), &DeviceProfile::h100()), "split-k");
        assert_eq!(variant(Gemm::new(4096, 4096, 1 << 15), &DeviceProfile::h100()), "double");
        assert_eq!(variant(square.clone(), &DeviceProfile::mesa()), "double");
        assert_eq!(variant(square.clone(), &DeviceProfile::swiftshader()), "double");
        assert_eq!(variant(Gemm::new(31, 512, 512), &DeviceProfile::mesa()), "naive");
        assert_eq!(variant(Gemm::new(4096, 4096, 15), &DeviceProfile::h100()), "naive");
        assert_eq!(variant(Gemm::new(32, 32, 32), &DeviceProfile::h100()), "naive");
        assert_eq!(variant(square.clone().tile(8, 8, 8), &DeviceProfile::mesa()), "tiled");
        assert_eq!(variant(square.variant("naive"), &DeviceProfile::h100()), "naive");
    }

    #[test]
    fn operands_have_the_stored_shape() {
        let lens = |gemm: &Gemm| -> Vec<_> {
            let program = lower(gemm, &DeviceProfile::webgpu_defaults()).unwrap();
            program.operands.iter().map(|o| (o.name, o.len)).collect()
        };
        let gemm = Gemm::new(3, 5, 7);
        assert_eq!(lens(&gemm), [("a", 21), ("b", 35), ("c", 15)]);
        let apart = gemm.clone().lda(10).ldb(11).ldc(12);
        assert_eq!(lens(&apart), [("a", 27), ("b", 71), ("c", 29)]);
        let transposed = apart.trans_a(true).trans_b(true);
        assert_eq!(lens(&transposed), [("a", 63), ("b", 51), ("c", 29)]);
        let program = Op::<f16>::lower(&transposed.with_bias(), &DeviceProfile::h100()).unwrap();
        assert_eq!(program.operands[2].len, 5);
        assert!(program.operands.iter().all(|o| o.dtype == DType::F16));
    }

    #[test]
    fn a_bias_and_mixed_types_have_their_operands_and_bytes() {
        let h100 = DeviceProfile::h100();
        let gemm = Gemm::new(3, 5, 7);
        let bias = |op: Gemm| Op::<f32>::lower(&op, &h100).unwrap();
        assert_eq!(bias(gemm.clone().with_bias()).operands[2].len, 5);
        let rows = bias(gemm.clone().with_row_bias());
        assert_eq!(rows.operands[2].len, 3);
        assert_eq!(rows.cost.bytes, 4.0 * (21.0 + 35.0 + 3.0 + 15.0));
        // The last call counts.
        assert_eq!(gemm.clone().with_row_bias().with_bias(), gemm.clone().with_bias());
        let mixed = gemm.clone().beta(1.0).with_row_bias().mixed_precision();
        let mixed = Op::<f16>::lower(&mixed, &h100).unwrap();
        let types: Vec<_> = mixed.operands.iter().map(|o| o.dtype).collect();
        assert_eq!(types, [DType::F16, DType::F16, DType::F32, DType::F32]);
        assert_eq!(mixed.cost.bytes, 2.0 * (21.0 + 35.0) + 4.0 * (3.0 + 15.0 + 15.0));
        let e = Op::<f16>::lower(&gemm.mixed_precision(), &DeviceProfile::swiftshader()).unwrap_err();
        assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("SHADER_F16"), "{e}");
        let e = Op::<f32>::lower(&Gemm::new(3, 5, 7).mixed_precision(), &h100).unwrap_err();
        assert!(e.to_string().contains("16 bits, not f32"), "{e}");
    }

    #[test]
    fn an_empty_result_needs_no_dispatch() {
        for (m, n) in [(0, 5), (5, 0), (0, 0)] {
            for variant in std::iter::once("auto").chain(on(&DeviceProfile::mesa()).map(|v| v.name)) {
                let gemm = Gemm::new(m, n, 7).variant(variant);
                let program = Op::<f32>::lower(&gemm.with_bias(), &DeviceProfile::mesa()).unwrap();
                assert!(program.dispatches.is_empty() && program.kernels.is_empty());
                assert_eq!(program.cost.flop, 0.0);
            }
        }
    }

    #[test]
    fn factors_are_not_bound_when_they_do_not_matter() {
        for gemm in
            [Gemm::new(40, 50, 0), Gemm::new(40, 50, 60).alpha(0.0), Gemm::new(40, 50, 60).alpha(-0.0)]
        {
            for variant in on(&DeviceProfile::webgpu_defaults()).map(|v| v.name) {
                let gemm = gemm.clone().variant(variant).beta(2.0).alpha(gemm.alpha);
                let program = lower(&gemm, &DeviceProfile::webgpu_defaults()).unwrap();
                let bound: Vec<_> = program.dispatches[0].bindings.iter().map(|b| b.resource).collect();
                assert_eq!(bound, [Resource::Operand(2)]);
                assert_eq!(program.cost, Cost { flop: 0.0, bytes: 2.0 * 4.0 * 2000.0 });
                assert!(program.decision.why.contains("A and B are not read"), "{}", program.decision.why);
            }
        }
    }

    #[test]
    fn c_is_read_only_where_beta_is_not_0() {
        for (beta, reads) in [(0.0, false), (-0.0, false), (1.0, true), (f32::NAN, true)] {
            let program = lower(&Gemm::new(9, 9, 9).beta(beta), &DeviceProfile::h100()).unwrap();
            let text = program.kernels[0].expand(Target::Naga).unwrap();
            assert_eq!(text.text().contains("params.beta"), reads);
            assert_eq!(program.cost.bytes, 4.0 * 81.0 * (3.0 + f64::from(reads)));
        }
    }

    #[test]
    fn long_work_is_cut_into_bands_that_cover_every_tile_once() {
        for (profile, gemm, dispatches) in [
            (DeviceProfile::h100(), Gemm::new(4096, 4096, 4096), 1),
            (DeviceProfile::h100(), Gemm::new(8192, 8192, 8192), 4),
            (DeviceProfile::mesa(), Gemm::new(2048, 2048, 2048), 2),
            (DeviceProfile::webgpu_defaults(), Gemm::new(2048, 2048, 2049).tile(10, 20, 3), 3),
        ] {
            let gemm = gemm.variant("tiled");
            let program = lower(&gemm, &profile).unwrap();
            assert_eq!(program.dispatches.len(), dispatches);
            let tile = gemm.tile.unwrap_or(DEFAULT_TILE);
            let mut next = 0;
            for i in 0..program.dispatches.len() {
                assert_eq!(program.param(i, "first_tile"), next);
                let tiles = program.param(i, "tiles");
                assert_eq!(program.dispatches[i].grid, Grid::fold(tiles));
                let flop = 2 * tiles * u64::from(tile.m * tile.n) * gemm.k as u64;
                assert!(flop <= dispatch_flop(profile.class));
                next += tiles;
            }
            let all = gemm.m.div_ceil(tile.m as usize) * gemm.n.div_ceil(tile.n as usize);
            assert_eq!(next, all as u64);
        }
    }

    #[test]
    fn a_long_k_is_cut_into_slices_that_carry_their_sums() {
        let h100 = DeviceProfile::h100();
        let s = slice_k(&h100);
        let program = lower(&Gemm::new(3, 5, 2 * s + 5).variant("double"), &h100).unwrap();
        assert_eq!(program.scratch, [4 * 15]);
        let slices: Vec<_> =
            (0..3).map(|i| (program.param(i, "first_k"), program.param(i, "end_k"))).collect();
        assert!(lower(&Gemm::new(3, 5, s).variant("double"), &h100).unwrap().scratch.is_empty());
        let s = s as u64;
        assert_eq!(slices, [(0, s), (s, 2 * s), (2 * s, 2 * s + 5)]);
        assert_eq!(program.dispatches.len(), 3);
    }

    #[test]
    fn a_leading_dimension_below_the_row_length_is_refused() {
        let h100 = DeviceProfile::h100();
        let gemm = Gemm::new(3, 5, 7);
        for (gemm, text) in [
            (gemm.clone().lda(6), "lda = 6 is below 7"),
            (gemm.clone().trans_a(true).lda(2), "lda = 2 is below 3"),
            (gemm.clone().ldb(4), "ldb = 4 is below 5"),
            (gemm.clone().trans_b(true).ldb(6), "ldb = 6 is below 7"),
            (gemm.clone().ldc(4), "ldc = 4 is below 5"),
        ] {
            let (kind, message) = refusal(&gemm, &h100);
            assert_eq!(kind, ErrorKind::InvalidArgument);
            assert!(message.starts_with("gemm 3 x 5 x 7: ") && message.contains(text), "{message}");
        }
    }

    #[test]
    fn a_tile_above_the_limits_is_refused_with_the_numbers() {
        let webgpu = DeviceProfile::webgpu_defaults();
        let gemm = Gemm::new(100, 100, 100);
        let (kind, text) = refusal(&gemm.clone().tile(32, 16, 8), &webgpu);
        assert!(kind == ErrorKind::TooLarge && text.contains("512 invocations"), "{text}");
        assert!(text.contains("256 in all"), "{text}");
        assert!(lower(&gemm.clone().tile(32, 16, 8), &DeviceProfile::h100()).is_ok());
        let (kind, text) = refusal(&gemm.clone().tile(16, 16, 129), &webgpu);
        assert!(kind == ErrorKind::TooLarge && text.contains("16512 bytes"), "{text}");
        for tile in [(0, 16, 16), (16, 0, 16), (16, 16, 0)] {
            let (kind, _) = refusal(&gemm.clone().tile(tile.0, tile.1, tile.2), &webgpu);
            assert_eq!(kind, ErrorKind::InvalidArgument);
        }
        let most = u32::MAX;
        assert_eq!(refusal(&gemm.tile(most, most, most), &webgpu).0, ErrorKind::TooLarge);
    }

    #[test]
    fn operands_above_the_limits_are_refused_with_the_numbers() {
        let (kind, text) = refusal(&Gemm::new(8192, 8192, 8192), &DeviceProfile::mesa());
        assert_eq!(kind, ErrorKind::TooLarge);
        assert!(text.contains("268435456 bytes") && text.contains("134217728 bytes"), "{text}");
        assert!(text.contains("storage binding"), "{text}");
        let (kind, text) = refusal(&Gemm::new(1 << 15, 1, 1 << 15), &DeviceProfile::swiftshader());
        assert!(kind == ErrorKind::TooLarge && text.contains("largest buffer"), "{text}");

        let many = 1 << 33;
        for gemm in [Gemm::new(many, 1, 1), Gemm::new(1, many, 1), Gemm::new(1, 1, many)] {
            let (kind, text) = refusal(&gemm, &boundless());
            assert!(kind == ErrorKind::TooLarge && text.contains("2^32 - 1"), "{text}");
        }
        // The elements can be counted, but not the last tile.
        let (kind, text) = refusal(&Gemm::new(1, 1, u32::MAX as usize).variant("tiled"), &boundless());
        assert!(kind == ErrorKind::TooLarge && text.contains("whole tiles of 16"), "{text}");
        let (kind, _) = refusal(&Gemm::new(usize::MAX, 2, 2), &boundless());
        assert_eq!(kind, ErrorKind::TooLarge);
    }

    #[test]
    fn f16_is_refused_where_shaders_have_none() {
        let e = Op::<f16>::lower(&Gemm::new(4, 4, 4), &DeviceProfile::swiftshader()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.to_string().contains("SHADER_F16"), "{e}");
        assert!(Op::<f16>::lower(&Gemm::new(4, 4, 4), &DeviceProfile::mesa()).is_ok());
    }

    #[test]
    fn an_unknown_variant_is_refused_with_the_names() {
        let (kind, text) = refusal(&Gemm::new(4, 4, 4).variant("fast"), &DeviceProfile::h100());
        assert!(kind == ErrorKind::InvalidArgument && text.contains("auto, naive, tiled"), "{text}");
    }

    #[test]
    fn samples_on_cooperative_matrices_validate_and_stay_short() {
        let profile = DeviceProfile::h100();
        let mut longest = 0;
        for program in samples(&profile, "coop").unwrap() {
            for kernel in &program.kernels {
                let text = kernel.expand(Target::Naga).unwrap();
                text.validate().unwrap();
                // The driver takes long for long ones.
                longest = longest.max(text.text().lines().count());
            }
        }
        assert!(longest < 1000, "{longest} lines");
    }

    #[test]
    fn precision_chooses_cooperative_matrices_or_is_refused() {
        let h100 = DeviceProfile::h100();
        let gemm = Gemm::new(512, 512, 512);
        for (precision, said) in [
            (Precision::Tensor, "A and B are rounded to f16"),
            (Precision::Split, "each element of A and B is split into two of f16"),
        ] {
            let program = lower(&gemm.clone().precision(precision), &h100).unwrap();
            assert!(
                program.variant() == "coop" && program.decision.why.contains(said),
                "{}",
                program.decision.why
            );
            let (kind, text) = refusal(&gemm.clone().precision(precision), &DeviceProfile::mesa());
            assert_eq!(kind, ErrorKind::Unsupported);
            assert!(text.contains("COOPERATIVE") && text.contains("Precision::Strict"), "{text}");
            let (kind, text) = refusal(&gemm.clone().precision(precision).variant("double"), &h100);
            assert_eq!(kind, ErrorKind::InvalidArgument);
            assert!(text.contains("`double`") && text.contains(precision.name()), "{text}");
        }
        // By name it is Tensor; f16 are not rounded.
        let named = gemm.clone().variant("coop");
        assert!(lower(&named, &h100).unwrap().decision.why.contains("rounded"));
        assert!(!Op::<f16>::lower(&named, &h100).unwrap().decision.why.contains("rounded"));
        let (kind, text) = refusal(&named, &DeviceProfile::mesa());
        assert!(kind == ErrorKind::Unsupported && text.contains("cooperative matrices"), "{text}");
        let halves = Op::<f16>::lower(&gemm.precision(Precision::Split), &h100).unwrap_err();
        assert_eq!(halves.kind(), ErrorKind::InvalidArgument);
        assert!(halves.to_string().contains("take Precision::Tensor"), "{halves}");
    }

    #[test]
    fn factors_are_packed_where_they_must_be() {
        let h100 = DeviceProfile::h100();
        let scratch = |gemm: &Gemm| {
            let program = Op::<f16>::lower(&gemm.clone().variant("coop").mixed_precision(), &h100).unwrap();
            assert_eq!(program.dispatches.len(), program.scratch.len() + 1);
            program.scratch
        };
        assert!(scratch(&Gemm::new(4096, 4096, 4096)).is_empty());
        // Rows and columns may end anywhere along k.
        assert!(scratch(&Gemm::new(37, 40, 96)).is_empty());
        assert!(scratch(&Gemm::new(37, 39, 96).trans_b(true)).is_empty());
        assert!(scratch(&Gemm::new(40, 48, 77).trans_a(true)).is_empty());
        assert_eq!(scratch(&Gemm::new(37, 39, 96)), [2 * 96 * 40]);
        assert_eq!(scratch(&Gemm::new(37, 40, 96).lda(97)), [2 * 37 * 96]);
        // A step of k that is part of a piece, or not there: both, with zeros up to a whole one of 32.
        assert_eq!(scratch(&Gemm::new(40, 40, 41)), [2 * 40 * 64, 2 * 64 * 40]);
        assert_eq!(scratch(&Gemm::new(40, 40, 8)), [2 * 40 * 32, 2 * 32 * 40]);

        let single = |precision| {
            let gemm = Gemm::new(40, 48, 96).precision(precision);
            let program = lower(&gemm, &h100).unwrap();
            let entries: Vec<_> =
                program.dispatches.iter().map(|d| program.kernels[d.kernel].entry).collect();
            (program.scratch.clone(), entries)
        };
        let (a, b) = (2 * 40 * 96, 2 * 96 * 48);
        assert_eq!(single(Precision::Tensor), (vec![a, b], vec!["gemm_pack", "gemm_pack", "gemm_coop"]));
        let scales = ["gemm_scales_clear", "gemm_scales", "gemm_scales"];
        let passes = [&scales[..], &["gemm_pack", "gemm_pack", "gemm_coop"]].concat();
        assert_eq!(single(Precision::Split), (vec![4 * 88, a, a, b, b], passes));

        let mut small = DeviceProfile::h100();
        small.limits.max_storage_binding = 4 * 40 * 48 - 1;
        let (kind, text) = refusal(&Gemm::new(4, 4, 6000).variant("coop").trans_b(true), &small);
        assert!(kind == ErrorKind::TooLarge && text.contains("bytes"), "{text}");
        small.limits.max_storage_binding = 8 * 7001;
        let op = Op::<f16>::lower(&Gemm::new(4, 4, 7001).variant("coop").trans_b(true), &small).unwrap_err();
        let text = op.to_string();
        assert!(op.kind() == ErrorKind::TooLarge && text.contains("56064 bytes of scratch"), "{text}");
    }

    #[test]
    fn tiles_of_cooperative_matrices_are_checked() {
        let h100 = DeviceProfile::h100();
        let coop = |tile: [u32; 3], part: [u32; 2]| {
            let gemm = Gemm::new(4096, 4096, 4096).variant("coop").tile(tile[0], tile[1], tile[2]);
            lower(&gemm.thread_tile(part[0], part[1]), &h100)
        };
        for (tile, part) in [
            ([128, 128, 24], [64, 64]),
            ([128, 128, 32], [24, 64]),
            ([128, 128, 32], [0, 64]),
            ([96, 128, 32], [64, 64]),
            ([0, 128, 32], [64, 64]),
            ([48, 32, 16], [16, 32]),
        ] {
            assert_eq!(coop(tile, part).unwrap_err().kind(), ErrorKind::InvalidArgument, "{tile:?} {part:?}");
        }
        for (tile, part) in [([256, 256, 64], [64, 64]), ([256, 256, 128], [32, 32])] {
            assert_eq!(coop(tile, part).unwrap_err().kind(), ErrorKind::TooLarge, "{tile:?} {part:?}");
        }
        let program = coop([128, 256, 48], [64, 64]).unwrap();
        let module = program.kernels[1].expand(Target::Naga).unwrap().validate().unwrap();
        let interface = module.interface("gemm_coop").unwrap();
        assert_eq!((interface.workgroup_size, interface.workgroup_bytes), ([256, 1, 1], 39_680));
        let most = u32::MAX;
        let (kind, _) = refusal(&Gemm::new(1, 1, 1).tile(most, most, most).variant("coop"), &h100);
        assert_eq!(kind, ErrorKind::InvalidArgument);
    }
}
