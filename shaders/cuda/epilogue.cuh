// The epilogue of a product: C = activate(alpha sum + beta C + bias), in f16 (RESULT_F16), bf16 (RESULT_BF16) or f32.
// BIAS is 0 for none, 1 for one per column, 2 for one per row. C is read only with READ_C, so NaN does not matter if
// beta is 0.
#pragma once

#include "cuda/activation.cuh"
#include "cuda/element.cuh"

struct Epilogue {
    float alpha;
    float beta;
    // Points to the first element for the tile's columns or rows.
    const Element *bias;

    // Moves to a tile that begins at this row and column.
    __device__ __forceinline__ void move(int row, int col) {
#if BIAS
        bias += BIAS == 1 ? col : row;
#endif
    }

    __device__ __forceinline__ Element element(int row, int col, float sum, const Element &before) const {
        float value = alpha * sum;
#if READ_C
        value += beta * to_float(before);
#endif
#if BIAS
        value += to_float(bias[BIAS == 1 ? col : row]);
#endif
        Element y;
        from_float(activate(value), y);
        return y;
    }

    __device__ __forceinline__ void one(Element *to, int row, int col, float sum) const {
        *to = element(row, col, sum, *to);
    }

    // Four elements of a row; `to` is aligned to four.
    __device__ __forceinline__ void four(Element *to, int row, int col, float4 sums) const {
        Four four;
#if READ_C
        four = *reinterpret_cast<const Four *>(to);
#endif
        four.x[0] = element(row, col, sums.x, four.x[0]);
        four.x[1] = element(row, col + 1, sums.y, four.x[1]);
        four.x[2] = element(row, col + 2, sums.z, four.x[2]);
        four.x[3] = element(row, col + 3, sums.w, four.x[3]);
        *reinterpret_cast<Four *>(to) = four;
    }
};
