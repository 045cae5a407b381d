// C = activation(alpha op(A) op(B) + beta C + bias) on tensor cores, by WMMA (sm_75 for f16, sm_80 for bf16 and
// tf32). Tiles in several stages of shared memory are copied asynchronously while others are multiplied, as in
// CUTLASS (Thakkar et al. 2023). One block of threads computes a tile of one product of the batch.
// UNIT_A and UNIT_B are the bytes of a copy, which addresses of lines are multiples of: 16 is the fastest. With
// PARTIAL_A and PARTIAL_B lines end within a copy.
#include "cuda/epilogue.cuh"
#include "cuda/matrices.cuh"

// `first` is the first tile of this launch; tiles are counted through the batch.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
gemm_wmma(const Factor *a, const Factor *b, const Element *bias, Element *c, unsigned long long first, unsigned m,
          unsigned n, unsigned k, unsigned long long lda, unsigned long long ldb, unsigned long long ldc,
          unsigned long long stride_a, unsigned long long stride_b, unsigned long long stride_c,
          unsigned slices, unsigned slice_k, float alpha, float beta) {
    const Matrices matrices = {a, b, c, m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c,
                               slices, slice_k};
    Epilogue end;
    end.alpha = alpha;
    end.beta = beta;
    end.bias = bias;
    matrices.tile(first + blockIdx.x, end);
}
