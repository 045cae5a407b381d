// One tile of one product of a batch of matrices in memory, by the tile engine. The epilogue is included before.
#pragma once

#include "cuda/product.cuh"

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

    __device__ __forceinline__ void one(int row, int col, Sum sum) const {
        end.one(c + row * ld + col, row, col, sum);
    }

    __device__ __forceinline__ void four(int row, int col, Sum4 sums) const {
        end.four(c + row * ld + col, row, col, sums);
    }
};

// The products of a batch. A product may be cut into `slices` of k, of `slice_k` each, a multiple of TILE_K: C then has
// as many matrices for each product.
struct Matrices {
    const Factor *a, *b;
    Element *c;
    unsigned m, n, k;
    unsigned long long lda, ldb, ldc, stride_a, stride_b, stride_c;
    unsigned slices, slice_k;

    // Computes tile number `at`, counted through the batch.
    __device__ __forceinline__ void tile(unsigned long long at, const Epilogue &end) const {
        const TilePlace place = tile_place(at, m, n);
        const unsigned long long product = place.product / slices;
        const unsigned row = place.row, col = place.col;
        const unsigned long long first_k = (place.product - product * slices) * slice_k;

        Left left;
        left.m = m - row;
        left.n = n - col;
        left.k = min(k - (unsigned)first_k, slice_k);
        left.step_a = TRANS_A ? TILE_K * lda : TILE_K;
        left.step_b = TRANS_B ? TILE_K : TILE_K * ldb;
        Copy<LINES_A, LENGTH_A, PITCH_A, UNIT_A, PARTIAL_A> copy_a(
            a + product * stride_a + (TRANS_A ? first_k * lda + row : row * lda + first_k), lda);
        Copy<LINES_B, LENGTH_B, PITCH_B, UNIT_B, PARTIAL_B> copy_b(
            b + product * stride_b + (TRANS_B ? col * ldb + first_k : first_k * ldb + col), ldb);
        SumsOfWarp sums = {};
        sum_products(sums, left.k, copy_a, copy_b, left);

        Tile result;
        result.c = c + place.product * stride_c + row * ldc + col;
        result.ld = ldc;
        result.end = end;
        result.end.move(row, col);
        const bool fours = ldc % 4 == 0 && reinterpret_cast<size_t>(result.c) % sizeof(Four) == 0;
        end_tile(sums, left.m, left.n, fours, result);
    }
};
