use super::product::samples::batched_samples;
use super::product::{BATCHED_VARIANTS, Product, ThreadTile, options, product_descriptor, rows_of};
use crate::program::prelude::*;

/// Multiplies each pair of matrices of a batch: `C[b] = activation(alpha op(A[b]) op(B[b]) + beta C[b] + bias)`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// // 2 frames of 2 points in the plane; one quarter turn, stored once, for all frames (stride 0).
/// let gpu = Gpu::new()?;
/// let points = gpu.upload(&[1.0f32, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0])?;
/// let turn = gpu.upload(&[0.0f32, 1.0, -1.0, 0.0])?;
/// let turned = gpu.alloc::<f32>(8)?;
/// let product = GemmBatched::new(2, 2, 2, 2).strides(4, 0, 4).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// product.record(&mut rec, &points, &turn, &turned)?;
/// rec.submit()?;
/// assert_eq!(turned.read()?, [0.0, 1.0, -1.0, 0.0, -3.0, 2.0, -5.0, 4.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// Packed matrices in one call: [`Gpu::gemm_batched`](crate::Gpu::gemm_batched).
///
/// # Shapes
/// Each `op(A[b])` is m x k, each `op(B[b])` k x n, each `C[b]` m x n, all row-major. `a` holds k x m matrices with
/// [`trans_a`](Self::trans_a), `b` n x k with [`trans_b`](Self::trans_b). Elements are `f32` or [`f16`](half::f16),
/// or f16 factors with everything else in f32 ([`mixed_precision`](Self::mixed_precision)). Operands are `a`, `b`,
/// `c`, in this order. [`with_bias`](Self::with_bias) adds `bias`, n elements, one for each column of every C;
/// [`with_row_bias`](Self::with_row_bias) adds m elements, one for each row. Leading dimensions
/// ([`lda`](Self::lda), [`ldb`](Self::ldb), [`ldc`](Self::ldc)) count the elements from one stored row to the next,
/// strides ([`strides`](Self::strides)) those from one matrix to the next. With stride 0 all products read the same
/// matrix, and matrices of `a` and of `b` may overlap. Those of `c` follow each other, or lie side by side in
/// longer rows. An operand has `(batch - 1) * stride + (rows - 1) * ld + row length` elements; elements of `c`
/// between its rows and matrices are not changed. `c` must not overlap the other operands.
///
/// Any extent and the batch may be 0. With `beta` = 0 (the default) `c` is not read, so its old contents do not
/// matter, even NaN. With `alpha` = 0 or k = 0 the result is `activation(beta C + bias)` and `a` and `b` are not
/// read.
///
/// # Precision and determinism
/// Products are summed in f32 for both element types. The epilogue is computed in f32 and rounded once to the element
/// type of C; f16 overflows to infinity. The error before the activation is that of [`Gemm`]: at most
/// `gamma(k + 4) (|alpha| |A| |B| + |beta C| + |bias|)`
/// ([`reference::gemm_batched_bound`](crate::reference::gemm_batched_bound)), and up to four times that for factors of
/// f16 where the device has cooperative matrices, unless [`Precision::Exact`](crate::dense::Precision::Exact) asks for
/// fused multiply-adds. [`Precision::Tensor`](crate::dense::Precision::Tensor) rounds factors of f32 to f16. NaN and
/// infinities propagate as in IEEE arithmetic. The same device, inputs and variant give the same bits.
///
/// # Cost
/// 2 batch m n k flop. Every matrix of `a` and `b` and the bias are read once, C is written once, and read once if
/// `beta` is not 0. One dispatch, or several if one could run into a watchdog. No scratch for k up to 2^20, or 2^13
/// on software drivers; above, slices of k carry their sums in 4 batch m n bytes.
///
/// # Variants
/// `naive`; `small` (a workgroup computes whole products, [`products`](Self::products) of them, with m and n up to
/// 64, and each thread a [`thread_tile`](Self::thread_tile) of C); `register` (a workgroup computes a tile of one
/// C); `unstaged` (the same without workgroup memory, for processors); `coop` (the same on cooperative matrices of
/// f16). `auto`, the default, predicts which is the fastest.
///
/// # On CUDA
/// As [`Gemm`].
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a leading dimension below the row length; a stride
///   that makes matrices of `c` overlap; a shape that the variant does not take; a precision that it does not offer;
///   an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above about 2^32 elements or above the largest binding or
///   buffer of the device; more products in a workgroup than its limits allow; carried sums above the largest
///   binding.
/// - [`Unsupported`](ErrorKind::Unsupported): `f16` on a device without SHADER_F16.
///
/// # Algorithm
/// `shaders/dense/gemm_batched_naive.wgsl`: the definition. `gemm_register.wgsl` and `gemm_double.wgsl`: as for
/// [`Gemm`]. `gemm_small.wgsl`: the same with whole matrices in workgroup memory (Abdelfattah, Haidar, Tomov and
/// Dongarra, *Performance, Design, and Autotuning of Batched GEMM for GPUs*, 2016).
///
/// # Example: heads side by side
/// ```
/// use tilework::dense::GemmBatched;
/// use tilework::program::{DeviceProfile, Op};
///
/// // Scores of attention, queries times transposed keys: 12 heads of 64 in the rows of 100 tokens.
/// let scores = GemmBatched::new(12, 100, 100, 64).lda(12 * 64).ldb(12 * 64).trans_b();
/// let scores = scores.strides(64, 64, 100 * 100).alpha(0.125);
/// let program = Op::<f32>::lower(&scores, &DeviceProfile::webgpu_defaults())?;
/// assert_eq!(program.operands[0].len, 100 * 12 * 64);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// [`Gemm`]: crate::Gemm
#[derive(Debug, Clone, PartialEq)]
pub struct GemmBatched {
    pub(crate) product: Product,
}

impl GemmBatched {
    /// Creates the products of `batch` pairs of an m x k and a k x n matrix.
    pub fn new(batch: usize, m: usize, n: usize, k: usize) -> Self {
        Self { product: Product::of_batch(batch, m, n, k) }
    }

    /// Sets the elements from one matrix to the next in `a`, `b` and `c`. By default matrices follow each other,
    /// each as long as its rows times its leading dimension. With stride 0 in `a` or `b` all products read the same
    /// matrix.
    #[must_use]
    pub fn strides(mut self, a: usize, b: usize, c: usize) -> Self {
        self.product.strides = Some([a, b, c]);
        self
    }

    /// Sets the number of products that a workgroup of `small` computes. By default they fill a workgroup of 32
    /// threads, or of 128 where one product alone takes 32 and is read by vec4s. Other variants ignore it.
    #[must_use]
    pub fn products(mut self, products: u32) -> Self {
        self.product.products = Some(products);
        self
    }

    /// Sets the part of C that one thread of `small` (by default 4 x 4) or `unstaged` computes: multiples of 4 up to
    /// 16. Other variants ignore it.
    #[must_use]
    pub fn thread_tile(mut self, tile: ThreadTile) -> Self {
        self.product.thread = Some([tile.rows, tile.columns]);
        self
    }
}

operands! {
    impl[T: Element,] GemmBatched, T [cuda] {
        fn record<C>(a: T, b: T, c: C);
        /// The bias added to each column or row of every C.
        optional with_bias<C>(bias: C);
        /// Alpha and beta, two elements.
        optional with_scalars(scalars: f32);
    }
}

product_descriptor!(GemmBatched, BATCHED_VARIANTS, f32, f16);

/// The catalogue entry of [`GemmBatched`].
pub(super) const INFO: Operation = Operation {
    name: "gemm-batched",
    about: "C[b] = activation(alpha op(A[b]) op(B[b]) + beta C[b] + bias), for every b of a batch",
    inputs: options::BATCHED_INPUTS,
    outputs: &[("c", "(B, m, n)")],
    types: &[DType::F32, DType::F16],
    options: options::BATCHED_OPTIONS,
    make: Some(options::make_batched),
    variants: GemmBatched::variants,
    samples: batched_samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[2, 8, 8], options: &[] },
    tiles: rows_of,
    ..Operation::UNDECLARED
};

#[cfg(test)]
mod tests;
