// C = activation(alpha op(A) op(B) + beta C + bias) on tensor cores, by WMMA (sm_75 for f16, sm_80 for bf16 and
// tf32). Tiles in several stages of shared memory are copied asynchronously while others are multiplied, as in
// CUTLASS (Thakkar et al. 2023). One block of threads computes a tile of one product of the batch.
// UNIT_A and UNIT_B are the bytes of a copy, which addresses of lines are multiples of: 16 is the fastest. With
// PARTIAL_A and PARTIAL_B lines end within a copy.
#include "cuda/product.cuh"
#include "cuda/epilogue.cuh"

// The rest of the factors from the first row, column and step of a tile on.
struct Left {
    int m, n, k;
    size_t step_a, step_b;

    template <typename CopyA, typename CopyB>
    __device__ __forceinline__ void begin(CopyA &a, CopyB &b, unsigned to_a, unsigned to_b, int first_k) const {
        const int left = k - first_k;
        a.begin(to_a, TRANS_A ? left : m, TRANS_A ? m : left);
        b.begin(to_b, TRANS_B ? n : left, TRANS_B ? left : n);
        a.advance(step_a);
        b.advance(step_b);
    }
};

struct Tile {
    Element *c;
    size_t ld;
    Epilogue end;

    __device__ __forceinline__ void one(int row, int col, float sum) const {
        end.one(c + row * ld + col, row, col, sum);
    }

    __device__ __forceinline__ void four(int row, int col, float4 sums) const {
        end.four(c + row * ld + col, row, col, sums);
    }
};

// `first` is the first tile of this launch; tiles are counted through the batch.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
gemm_wmma(const Factor *a, const Factor *b, const Element *bias, Element *c, unsigned long long first, unsigned m,
          unsigned n, unsigned k, unsigned long long lda, unsigned long long ldb, unsigned long long ldc,
          unsigned long long stride_a, unsigned long long stride_b, unsigned long long stride_c, float alpha, float beta) {
    const TilePlace place = tile_place(first + blockIdx.x, m, n);
    const unsigned long long product = place.product;
    const unsigned row = place.row, col = place.col;

    Left left;
    left.m = m - row;
    left.n = n - col;
    left.k = k;
    left.step_a = TRANS_A ? TILE_K * lda : TILE_K;
    left.step_b = TRANS_B ? TILE_K : TILE_K * ldb;
    Copy<LINES_A, LENGTH_A, PITCH_A, UNIT_A, PARTIAL_A> copy_a(a + product * stride_a + (TRANS_A ? row : row * lda), lda);
    Copy<LINES_B, LENGTH_B, PITCH_B, UNIT_B, PARTIAL_B> copy_b(b + product * stride_b + (TRANS_B ? col * ldb : col), ldb);
    SumsOfWarp sums = {};
    sum_products(sums, k, copy_a, copy_b, left);

    Tile result;
    result.c = c + product * stride_c + row * ldc + col;
    result.ld = ldc;
    result.end.alpha = alpha;
    result.end.beta = beta;
    result.end.bias = BIAS == 0 ? nullptr : bias + (BIAS == 1 ? col : row);
    const bool fours = ldc % 4 == 0 && reinterpret_cast<size_t>(result.c) % sizeof(Four) == 0;
    end_tile(sums, left.m, left.n, fours, result);
}
