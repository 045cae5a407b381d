// The epilogue of a product of bytes: C = sum in i32 (RESULT_I32), or activate(row_scale[row] column_scale[column] sum
// + bias[column]) in f16 (RESULT_F16) or f32. BIAS: there is one.
#pragma once

#include "cuda/activation.cuh"
#include "cuda/element.cuh"

struct Epilogue {
    // Point to the first element for the tile's rows or columns.
    const float *row_scale;
    const float *column_scale;
    const float *bias;

    // Moves to a tile that begins at this row and column.
    __device__ __forceinline__ void move(int row, int col) {
#if !RESULT_I32
        row_scale += row;
        column_scale += col;
#endif
#if BIAS
        bias += col;
#endif
    }

    __device__ __forceinline__ Element element(int row, int col, int sum) const {
#if RESULT_I32
        return sum;
#else
        float value = row_scale[row] * column_scale[col] * (float)sum;
#if BIAS
        value += bias[col];
#endif
        Element y;
        from_float(activate(value), y);
        return y;
#endif
    }

    __device__ __forceinline__ void one(Element *to, int row, int col, int sum) const { *to = element(row, col, sum); }

    // Four elements of a row; `to` is aligned to four.
    __device__ __forceinline__ void four(Element *to, int row, int col, int4 sums) const {
        Four four;
        four.x[0] = element(row, col, sums.x);
        four.x[1] = element(row, col + 1, sums.y);
        four.x[2] = element(row, col + 2, sums.z);
        four.x[3] = element(row, col + 3, sums.w);
        *reinterpret_cast<Four *>(to) = four;
    }
};
