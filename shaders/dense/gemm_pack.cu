// Copies a factor of a matrix product into rows of whole lines, as the copy engine and tensor cores need it; for a
// transposed factor, or rows that start anywhere. FACTOR_TF32: rounded, with SPLIT also the remainder.
// A block of 256 copies 64 x 64 elements; TRANSPOSE where rows of the copy are columns in memory.
#include "cuda/numbers.cuh"

#if FACTOR_TF32 || FACTOR_F32
typedef float Factor;
#elif FACTOR_S8
typedef unsigned char Factor;
#else
typedef unsigned short Factor;
#endif

__device__ __forceinline__ void put(Factor x, Factor *to, Factor *low, unsigned long long at) {
#if FACTOR_TF32
    const float large = round_tf32(x);
    to[at] = large;
#if SPLIT
    low[at] = round_tf32(x - large);
#endif
#else
    to[at] = x;
#endif
}

extern "C" __global__ void __launch_bounds__(256) gemm_pack(
    const Factor * from, Factor * to, Factor * low, int rows, int inner, unsigned long long ld, unsigned long long stride,
    unsigned long long ld_to) {
    const int row = blockIdx.y * 64, col = blockIdx.x * 64;
    from += blockIdx.z * stride;
    to += blockIdx.z * ld_to * rows;
#if SPLIT
    low += blockIdx.z * ld_to * rows;
#endif
    const int x = threadIdx.x % 64, y = threadIdx.x / 64;
#if TRANSPOSE
    __shared__ Factor tile[64][65];
#pragma unroll 16
    for (int i = y; i < 64; i += 4)
        if (col + i < inner && row + x < rows) tile[i][x] = from[(col + i) * ld + row + x];
    __syncthreads();
#pragma unroll 16
    for (int i = y; i < 64; i += 4)
        if (row + i < rows && col + x < inner) put(tile[x][i], to, low, (row + i) * ld_to + col + x);
#elif FACTOR_TF32 || FACTOR_F32 || FACTOR_S8
#pragma unroll 16
    for (int i = y; i < 64; i += 4)
        if (row + i < rows && col + x < inner) put(from[(row + i) * ld + col + x], to, low, (row + i) * ld_to + col + x);
#else
    // Words of two elements, from the one or two words that hold them; a last element alone.
    const int pair = threadIdx.x % 32, first = threadIdx.x / 32, at = col + 2 * pair;
#pragma unroll 8
    for (int i = first; i < 64; i += 8) {
        if (row + i >= rows || at >= inner) continue;
        const unsigned long long source = (row + i) * ld + at;
        const Factor *const place = from + source;
        unsigned word;
        if (at + 1 == inner) {
            word = *place;
        } else if ((unsigned long long)place % 4 == 0) {
            word = *(const unsigned *)place;
        } else {
            word = *place | (unsigned)place[1] << 16;
        }
        *(unsigned *)(to + (row + i) * ld_to + at) = word;
    }
#endif
}
