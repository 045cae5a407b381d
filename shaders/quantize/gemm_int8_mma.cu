// C = A B of signed bytes on tensor cores, summed in i32, and scaled (cuda/bytes_epilogue.cuh). A is stored m x k and B
// n x k, with rows of whole 16-byte chunks. One block of threads computes a tile, as in dense/gemm_wmma.cu.
#include "cuda/bytes_epilogue.cuh"
#include "cuda/matrices.cuh"

// `first` is the first tile of this launch.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
gemm_int8_mma(const Factor *a, const Factor *b, const float *bias, Element *c, unsigned long long first, unsigned m,
              unsigned n, unsigned k, unsigned long long lda, unsigned long long ldb, unsigned long long ldc,
              unsigned long long stride_a, unsigned long long stride_b, unsigned long long stride_c,
              unsigned slices, unsigned slice_k, const float *row_scale, const float *column_scale) {
    const Matrices matrices = {a, b, c, m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c,
                               slices, slice_k};
    matrices.tile(first + blockIdx.x, {row_scale, column_scale, bias});
}
