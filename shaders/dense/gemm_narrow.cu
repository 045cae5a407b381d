// C = activation(alpha op(A) op(B) + beta C + bias) where C has at most NARROW rows or columns: the other factor, the
// large one, is read once, element by element, so that it may start anywhere. Sums of f32 by fused multiply-adds.
// ALONG_K: elements of the large factor are consecutive in k; a block of 256 takes LINES of its lines, and its threads
// every 256th element. Else a block of 1024 takes 32 columns, and its warps every 32nd line.
// ROWS: the large factor is A, so that C has few columns. FACTOR_BF16: bf16, else f16.
#include "cuda/epilogue.cuh"

#if FACTOR_BF16
typedef Bf16 Factor;
#else
typedef F16 Factor;
#endif
#if ALONG_K
#define THREADS 256
#else
#define THREADS 1024
#endif
#define LINES 4

// `small` has NARROW lines at most, `few` of them, whose elements are `small_k` apart.
extern "C" __global__ void __launch_bounds__(THREADS)
gemm_narrow(const Factor *large, const Factor *small, const Element *bias, Element *c, int count, int few, int k,
            unsigned long long ld, unsigned long long small_line, unsigned long long small_k, unsigned long long ldc,
            unsigned long long stride_large, unsigned long long stride_small, unsigned long long stride_c, int slices,
            int slice_k, float alpha, float beta) {
    const int slice = blockIdx.y % slices, thread = threadIdx.x;
    const unsigned long long product = blockIdx.z;
    const int begin = slice * slice_k, end_k = min(k, begin + slice_k);
    large += product * stride_large;
    small += product * stride_small;
    c += (product * slices + slice) * stride_c;
    Epilogue end;
    end.alpha = alpha;
    end.beta = beta;
    end.bias = bias;
    const auto write = [&](int line, int s, float sum) {
        const int row = ROWS ? line : s, col = ROWS ? s : line;
        end.one(c + row * ldc + col, row, col, sum);
    };
#if ALONG_K
    __shared__ float parts[THREADS / 32][LINES * NARROW];
    const int first = blockIdx.x * LINES;
    const Factor *lines[LINES];
#pragma unroll
    for (int l = 0; l < LINES; l++) lines[l] = large + (unsigned long long)min(first + l, count - 1) * ld;
    float sums[LINES][NARROW] = {};
#pragma unroll 4
    for (int i = begin + thread; i < end_k; i += THREADS) {
        float x[NARROW];
#pragma unroll
        for (int s = 0; s < NARROW; s++) x[s] = to_float(small[min(s, few - 1) * small_line + i * small_k]);
#pragma unroll
        for (int l = 0; l < LINES; l++) {
            const float y = to_float(lines[l][i]);
#pragma unroll
            for (int s = 0; s < NARROW; s++) sums[l][s] += x[s] * y;
        }
    }
#pragma unroll
    for (int l = 0; l < LINES; l++)
#pragma unroll
        for (int s = 0; s < NARROW; s++) {
            float sum = sums[l][s];
#pragma unroll
            for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
            if (thread % 32 == 0) parts[thread / 32][l * NARROW + s] = sum;
        }
    __syncthreads();
    if (thread >= LINES * NARROW) return;
    const int line = first + thread / NARROW, s = thread % NARROW;
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < THREADS / 32; w++) sum += parts[w][thread];
    if (line < count && s < few) write(line, s, sum);
#else
    __shared__ float parts[THREADS / 32][33];
    const int lane = thread % 32, warp = thread / 32, line = blockIdx.x * 32 + lane;
    const Factor *const column = large + min(line, count - 1);
    float sums[NARROW] = {};
#pragma unroll 8
    for (int i = begin + warp; i < end_k; i += THREADS / 32) {
        const float y = to_float(column[i * ld]);
#pragma unroll
        for (int s = 0; s < NARROW; s++) sums[s] += to_float(small[min(s, few - 1) * small_line + i * small_k]) * y;
    }
#pragma unroll
    for (int s = 0; s < NARROW; s++) {
        __syncthreads();
        parts[warp][lane] = sums[s];
        __syncthreads();
        // A warp adds the sums of one column.
        float sum = parts[lane][warp];
#pragma unroll
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        const int of = blockIdx.x * 32 + warp;
        if (lane == 0 && of < count && s < few) write(of, s, sum);
    }
#endif
}
