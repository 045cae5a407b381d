// C = activation(alpha op(A) op(B) + beta C + bias) on tensor cores, by WMMA (sm_75 for f16, sm_80 for bf16 and tf32).
// Tiles in several stages of shared memory, copied asynchronously while others are multiplied, as in CUTLASS
// (Thakkar et al. 2023). One block of threads computes a tile of one product of the batch.
// UNIT_A and UNIT_B are the bytes of a piece that the leading dimensions allow; where an operand begins elsewhere than at
// a multiple of them, single elements are copied instead.
#include "cuda/product.cuh"
#include "cuda/epilogue.cuh"

struct Matrices {
    const Factor *a;
    const Factor *b;
    Element *c;
    size_t lda, ldb;
    // Where the tile begins.
    int row, col;
};

// What is left of the factors from the first row, column and step of a tile on.
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

template <int PIECE_A, int PIECE_B>
__device__ __forceinline__ void sum_tile(Sums (&sums)[BLOCKS_M][BLOCKS_N], const Matrices &of, const Left &left) {
    const size_t row = of.row, col = of.col;
    Copy<LINES_A, LENGTH_A, PITCH_A, PIECE_A> a(of.a + (TRANS_A ? row : row * of.lda), of.lda);
    Copy<LINES_B, LENGTH_B, PITCH_B, PIECE_B> b(of.b + (TRANS_B ? col * of.ldb : col), of.ldb);
    sum_products(sums, a, b, left);
}

// `first` is the first tile of this launch; tiles are counted through the batch.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
gemm_wmma(const Factor *a, const Factor *b, const Element *bias, Element *c, unsigned long long first, unsigned m,
          unsigned n, unsigned k, unsigned long long lda, unsigned long long ldb, unsigned long long ldc,
          unsigned long long stride_a, unsigned long long stride_b, unsigned long long stride_c, float alpha, float beta) {
    const unsigned tiles_m = (m + TILE_M - 1) / TILE_M;
    const unsigned tiles_n = (n + TILE_N - 1) / TILE_N;
    const unsigned long long tiles = (unsigned long long)tiles_m * tiles_n;
    const unsigned long long block = first + blockIdx.x;
    const unsigned long long product = block / tiles;
    const unsigned long long tile = block % tiles;
    // Columns of tiles of eight rows after each other, so that neighbours share factors in the second cache.
    const unsigned long long band = tile / (8ull * tiles_n);
    const unsigned inside = (unsigned)(tile - band * 8ull * tiles_n);
    const unsigned first_row = (unsigned)band * 8;
    const unsigned rows = min(tiles_m - first_row, 8u);

    Matrices of;
    of.a = a + product * stride_a;
    of.b = b + product * stride_b;
    of.c = c + product * stride_c;
    of.lda = lda;
    of.ldb = ldb;
    of.row = (first_row + inside % rows) * TILE_M;
    of.col = inside / rows * TILE_N;

    Left left;
    left.m = m - of.row;
    left.n = n - of.col;
    left.k = k;
    left.step_a = TRANS_A ? TILE_K * lda : TILE_K;
    left.step_b = TRANS_B ? TILE_K : TILE_K * ldb;
    Sums sums[BLOCKS_M][BLOCKS_N] = {};
    if (reinterpret_cast<size_t>(of.a) % UNIT_A == 0 && reinterpret_cast<size_t>(of.b) % UNIT_B == 0) {
        sum_tile<UNIT_A, UNIT_B>(sums, of, left);
    } else {
        sum_tile<sizeof(Factor), sizeof(Factor)>(sums, of, left);
    }

    Tile result;
    result.c = of.c + of.row * ldc + of.col;
    result.ld = ldc;
    result.end.alpha = alpha;
    result.end.beta = beta;
    result.end.bias = BIAS == 0 ? nullptr : bias + (BIAS == 1 ? of.col : of.row);
    const bool fours = ldc % 4 == 0 && reinterpret_cast<size_t>(of.c) % (4 * sizeof(Element)) == 0;
    end_tile(sums, left.m, left.n, fours, result);
}
