use super::product::samples::samples;
use super::product::{Product, ProductTile, ThreadTile, VARIANTS, options, product_descriptor, rows_of};
use crate::program::facts::{Fact, Subject, fact};
use crate::program::prelude::*;

/// Multiplies two matrices and finishes each element: `C = activation(alpha op(A) op(B) + beta C + bias)`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// // A fully connected layer: 2 samples of 3 features, 2 neurons, each neuron's weights in a row.
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let weights = gpu.upload(&[1.0f32, 0.0, -1.0, 0.5, 0.5, 0.5])?;
/// let (bias, y) = (gpu.upload(&[0.0f32, 1.0])?, gpu.alloc::<f32>(4)?);
/// let layer = Gemm::new(2, 2, 3).trans_b().activation(Activation::Relu).with_bias().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// layer.with_bias(&bias).record(&mut rec, &x, &weights, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [0.0, 4.0, 0.0, 8.5]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// The plain product of two buffers in one call: [`Gpu::gemm`](crate::Gpu::gemm).
///
/// # Shapes
/// `op(A)` is m x k, `op(B)` is k x n, C is m x n, all row-major. `a` is stored k x m with
/// [`trans_a`](Self::trans_a), `b` n x k with [`trans_b`](Self::trans_b). Elements are `f32` or [`f16`](half::f16),
/// or f16 factors with everything else in f32 ([`mixed_precision`](Self::mixed_precision)). Operands are `a`, `b`,
/// `c`, in this order. [`with_bias`](Self::with_bias) adds `bias`, n elements, one for each column of C;
/// [`with_row_bias`](Self::with_row_bias) adds m elements, one for each row. A leading dimension (`lda`, `ldb`,
/// `ldc`) is the number of elements from one stored row to the next; an operand of `rows` rows then has
/// `(rows - 1) * ld + row length` elements. Elements of `c` between its rows are not changed. `c` must not overlap
/// the other operands.
///
/// Any extent may be 0. With `beta` = 0 (the default) `c` is not read, so its old contents do not matter, even NaN.
/// With `alpha` = 0 or k = 0 the result is `activation(beta C + bias)` and `a` and `b` are not read.
///
/// # Precision and determinism
/// Products are summed in f32 for both element types. The epilogue is computed in f32 and rounded once to the element
/// type of C; f16 overflows to infinity. With fused multiply-adds the error before the activation is at most
/// `gamma(k + 4) (|alpha| |A| |B| + |beta C| + |bias|)` with `gamma(j) = j u / (1 - j u)`, u = 2^-24
/// ([`reference::gemm_bound`](crate::reference::gemm_bound)). [`Precision::Strict`], the default, multiplies factors
/// of f16 on cooperative matrices (tensor cores) where the device has them and that is faster, as `coop` does: the
/// error is then at most four times as large, since the hardware truncates sums. [`Precision::Exact`] keeps to fused
/// multiply-adds. The other two multiply f32 on cooperative matrices. NaN and infinities propagate as in IEEE
/// arithmetic.
///
/// The same device, inputs, variant and tile give the same bits, except with `split-k-atomic`, which adds in any
/// order. `auto` never chooses it, and [`deterministic`](Gemm::deterministic) excludes it.
///
/// # Cost
/// 2 m n k flop. a, b and bias are read once, C is written once, and read once if `beta` is not 0. One dispatch;
/// work above a fixed number of flop is cut into several, so that none runs into a watchdog. No scratch for k up to
/// 2^20 (2^13 on software drivers), above that 4 m n bytes. `split-k` takes 4 m n bytes for each slice of k,
/// `split-k-atomic` 4 m n bytes in all, and both make a second pass over C; so does `coop` where C alone has too few
/// tiles for the device. `coop` first copies a factor to scratch, 2 bytes for each element, where the copy costs less
/// than loads of single elements: a large factor of f32, or one whose rows are not multiples of four elements. With
/// [`Precision::Split`] it copies both, 4 bytes for each element, after a pass that reads the factor for its powers of
/// two.
///
/// # Variants
/// Each step adds one idea: `naive`; `tiled` (workgroup memory); `coarsened` (a thread computes several tiles of
/// columns); `register-direct` (a thread has the sums of a row in registers, A comes straight from storage);
/// `register-staged` (the same, A staged through workgroup memory); `unstaged` (blocks of sums, both factors straight
/// from storage: without barriers, for processors); `register` (blocks of sums, both factors staged);
/// `double` (two tiles in workgroup memory, loads ahead of use); `split-k` (k split over workgroups, a second pass
/// adds the sums) and `split-k-atomic` (sums added by compare-exchange). `coop` runs on cooperative matrices and
/// rounds f32 factors to f16 or splits them: see [`Precision`]. `auto`, the default, predicts the time of each variant,
/// tile and number of slices from the shape and the device's rates, and takes the fastest that offers the
/// [`precision`](Self::precision). [`tile`](Self::tile),
/// [`thread_tile`](Self::thread_tile), [`slices`](Self::slices), [`rolled`](Self::rolled) and
/// [`unrolled`](Self::unrolled) adjust a variant.
///
/// # On CUDA
/// With the feature `cuda` the same descriptor plans on a `CudaGpu`, for f32, f16 and [`bf16`](half::bf16). Tensor
/// cores multiply factors of 16 bits, and those of f32 with [`Precision::Tensor`] or [`Precision::Split`]; these and
/// bf16 need sm_80. Extents go up to 2^31 - 1024. The variants are `fma`, `wmma`, `mma`, on Hopper `wgmma`, and
/// `narrow` for up to 8 rows or columns of f16 and bf16; `auto` predicts the time of each with each tile. The
/// [`tile`](Self::tile) of the first three belongs to a block of threads and their [`thread_tile`](Self::thread_tile)
/// to a warp, in multiples of 16; `wgmma` has its own tiles. Where there are fewer tiles than the card holds, k is
/// cut into [`slices`](Self::slices); a second kernel adds their sums in their order, and 4 m n bytes of scratch hold
/// the sums of a slice. A leading dimension or stride that is no multiple of 16 bytes slows copies down, so such a
/// factor is first copied to scratch where that is predicted to pay; for `wgmma` always, as are factors of f32 whose
/// inner extent is not innermost in memory, and those that are split.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a leading dimension below the row length; a tile,
///   thread tile or precision that the variant does not offer; a precision that the type of the factors does not
///   allow; an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above 2^32 - 1 elements or above the largest binding or
///   buffer of the device; a tile above its workgroup limits.
/// - [`Unsupported`](ErrorKind::Unsupported): `f16` on a device without SHADER_F16; `Split` or `Tensor` on a
///   device without cooperative matrices of f16 with sums of f32.
///
/// # Algorithm
/// `shaders/dense/gemm_naive.wgsl`: the definition. `gemm_tiled.wgsl` and `gemm_coarsened.wgsl`: tiles in workgroup
/// memory (Kirk and Hwu, *Programming Massively Parallel Processors*). `gemm_register_direct.wgsl`: Volkov and
/// Demmel, *Benchmarking GPUs to tune dense linear algebra*, 2008. `gemm_register.wgsl` and `gemm_double.wgsl`:
/// after Nath, Tomov and Dongarra, *An improved MAGMA GEMM for Fermi GPUs*, 2010. `gemm_slabs.wgsl` adds slices of
/// k. `gemm_coop.wgsl` multiplies on cooperative matrices, `gemm_pack.wgsl` copies factors for it and
/// `gemm_scales.wgsl` finds powers of two; the split is that of Ootomo and Yokota, 2022. On CUDA: `gemm_wmma.cu`
/// and `gemm_wgmma.cu`.
///
/// # Example: lowering without a device
/// ```
/// use half::f16;
/// use tilework::DType;
/// use tilework::dense::Gemm;
/// use tilework::program::{DeviceProfile, Op};
///
/// // Features and weights in half precision, bias and results in f32.
/// let layer = Gemm::new(64, 128, 784).trans_b().with_bias().mixed_precision();
/// let program = Op::<f16>::lower(&layer, &DeviceProfile::h100())?;
/// let types: Vec<_> = program.operands.iter().map(|o| (o.name, o.dtype)).collect();
/// assert_eq!(types, [("a", DType::F16), ("b", DType::F16), ("bias", DType::F32), ("c", DType::F32)]);
/// assert_eq!(program.cost.flop, 2.0 * 64.0 * 128.0 * 784.0);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// [`Precision`]: crate::Precision
/// [`Precision::Exact`]: crate::Precision::Exact
/// [`Precision::Split`]: crate::Precision::Split
/// [`Precision::Strict`]: crate::Precision::Strict
/// [`Precision::Tensor`]: crate::Precision::Tensor
#[derive(Debug, Clone, PartialEq)]
pub struct Gemm {
    pub(crate) product: Product,
}

impl Gemm {
    /// Creates the product of an m x k and a k x n matrix.
    pub fn new(m: usize, n: usize, k: usize) -> Self {
        Self { product: Product::new(m, n, k) }
    }

    /// Sets the tile that a workgroup computes. The default suits the device, the shape and the variant. With a
    /// tile and without a variant, `auto` chooses `tiled`.
    ///
    /// - `naive` and `tiled` have one thread for each element and take any sides within the device's limits. `naive`
    ///   and `unstaged` ignore `k`.
    /// - `coarsened` needs `n` to be a multiple of 2. `register-direct` and `register-staged` need `n` to be a multiple
    ///   of 4 up to 64, which is what a thread computes, and `m` to be at least `n / 2`.
    /// - The other variants need multiples of their [`thread_tile`](Self::thread_tile), and `k` a multiple of 4.
    /// - `coop` needs `k` to be a multiple of the side of a cooperative matrix (16 or 8), and loads that the
    ///   threads can share evenly.
    #[must_use]
    pub fn tile(mut self, tile: ProductTile) -> Self {
        self.product.tile = Some(tile);
        self
    }

    /// Sets the part of the tile that one thread computes, or one subgroup for `coop`. The default suits the tile.
    /// With a thread tile and without a variant, `auto` chooses `double`.
    ///
    /// The variants with sums in registers take multiples of 4 up to 16; `coarsened` takes 1 x 2 or 1 x 4,
    /// `register-direct` and `register-staged` take 1 x 4 to 1 x 64 in multiples of 4, `naive` and `tiled` 1 x 1, and
    /// `coop` multiples of the side of a cooperative matrix. Large thread tiles make long kernels, which software
    /// drivers take seconds to compile.
    #[must_use]
    pub fn thread_tile(mut self, tile: ThreadTile) -> Self {
        self.product.thread = Some([tile.rows, tile.columns]);
        self
    }

    /// Sets the largest number of slices that `split-k`, `split-k-atomic`, `coop` and all variants on CUDA cut k into.
    /// The default is predicted to be the fastest. Other variants ignore it.
    #[must_use]
    pub fn slices(mut self, slices: u32) -> Self {
        self.product.slices = Some(slices);
        self
    }

    /// Keeps loops over the steps of k in a tile for kernels with sums in registers: the default of `register-direct`
    /// and `register-staged`.
    #[must_use]
    pub fn rolled(mut self) -> Self {
        self.product.unrolled = Some(false);
        self
    }

    /// Writes out the steps of k in a tile for kernels with sums in registers: the default of `register`, `double`,
    /// `split-k` and `split-k-atomic`.
    #[must_use]
    pub fn unrolled(mut self) -> Self {
        self.product.unrolled = Some(true);
        self
    }

    /// Makes the workgroup memory of kernels with sums in registers of vec4s, or of scalars; for tests and
    /// measurements. The default is vec4s on Vulkan, where storing one component leaves the others alone.
    #[doc(hidden)]
    #[must_use]
    pub fn workgroup_vectors(mut self, vectors: bool) -> Self {
        self.product.vectors = Some(vectors);
        self
    }

    /// Makes `coop` sum each step of k apart and add it to C in f32, as `Precision::Split` always does; for
    /// measurements.
    #[doc(hidden)]
    #[must_use]
    pub fn fresh_sums(mut self, fresh: bool) -> Self {
        self.product.fresh_sums = fresh;
        self
    }

    /// Makes `coop` copy both factors first, or read both in place; for tests and measurements. The default is
    /// whichever the policy predicts to be faster.
    #[doc(hidden)]
    #[must_use]
    pub fn packed(mut self, packed: bool) -> Self {
        self.product.packs = Some(packed);
        self
    }

    deterministic!(product.deterministic);
}

operands! {
    impl[T: Element,] Gemm, T [cuda] {
        fn record<C>(a: T, b: T, c: C);
        /// The bias added to each column or row of C.
        optional with_bias<C>(bias: C);
        /// Alpha and beta, two elements.
        optional with_scalars(scalars: f32);
    }
}

product_descriptor!(Gemm, VARIANTS, f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "gemm",
    about: "C = activation(alpha op(A) op(B) + beta C + bias)",
    inputs: options::INPUTS,
    outputs: &[("c", "(m, n)")],
    types: &[DType::F32, DType::F16],
    options: options::OPTIONS,
    make: Some(options::make),
    variants: Gemm::variants,
    samples,
    comparison: Some(Comparison::Sums),
    tiles: rows_of,
    facts,
    ..Operation::UNDECLARED
};

/// Counts the elements of A and B that are loaded, against those of the definition.
fn facts(subject: &Subject<'_>) -> Option<Vec<Fact>> {
    let [m, n, k] = ["m", "n", "k"].map(|name| subject.param(name));
    let (m, n, k) = (m?, n?, k?);
    let once = (m * k + k * n) as f64;
    let loaded = (subject.program.traffic? - subject.program.cost.bytes) / subject.element_bytes() as f64 + once;
    let mut facts = vec![fact("reuse", 2.0 * (m * n * k) as f64 / loaded, "uses of an element loaded")];
    // The lanes' places in a tile of C, where each lane loads for itself.
    let (width, spec) = match subject.program.variant() {
        "naive" => subject.kernel("gemm_naive").map(|(k, i)| (u64::from(i.workgroup_size[0]), &k.spec))?,
        "register-direct" => subject.kernel("gemm_register_direct").map(|(k, _)| (1, &k.spec))?,
        "register-staged" => subject.kernel("gemm_register_staged").map(|(k, _)| (1, &k.spec))?,
        _ => return Some(facts),
    };
    let (trans_a, trans_b) = (spec.is_set("TRANS_A"), spec.is_set("TRANS_B"));
    let (lda, ldb) = (subject.param("lda")?, subject.param("ldb")?);
    let side = |name| spec.number(name).map(u64::from);
    let (variant, step) = (subject.program.variant(), side("TILE_K").unwrap_or(1));
    facts.push(subject.transactions("loads of A", |lane| {
        // Rows of the tile along k, where it is staged as it is stored.
        let (row, i) =
            if variant == "register-staged" && !trans_a { (lane / step, lane % step) } else { (lane / width, 0) };
        let row = row.min(m - 1);
        if trans_a { row } else { row * lda + i }
    })?);
    let across = side("TILE_N")?;
    facts.push(subject.transactions("loads of B", |lane| {
        let (i, column) = match variant {
            "naive" => (0, lane % width),
            _ if trans_b => (lane % step, lane / step),
            _ => (lane / across, lane % across),
        };
        let column = column.min(n - 1);
        if trans_b { column * ldb + i } else { i * ldb + column }
    })?);
    Some(facts)
}

#[cfg(test)]
mod tests;
