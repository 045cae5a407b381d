// The factors of a product: f16, FACTOR_BF16, or f32 that are rounded to tf32 (FACTOR_TF32), the nearest with ties away
// from 0, all for tensor cores; or FACTOR_F32 as they are, for fused multiply-adds. With SPLIT each f32 becomes two of tf32
// and three of their four products are summed, each step of k apart and then added in f32, since tensor cores cut off what
// they add to a long sum (Ootomo and Yokota 2022). They are multiplied in blocks of 16 x BLOCK_K of A and BLOCK_K x 16 of
// B, which come from shared memory in the order in which they are stored, by WMMA or (MMA) by the instructions of sm_80 that
// it is made of there.
#pragma once

#include "cuda/numbers.cuh"

#if FACTOR_BF16
typedef Bf16 Factor;
#define BLOCK_K 16
#elif FACTOR_TF32
typedef float Factor;
#define BLOCK_K 8
#elif FACTOR_F32
typedef float Factor;
#define BLOCK_K 2
#else
typedef F16 Factor;
#define BLOCK_K 16
#endif

// Elements behind a line in shared memory, so that blocks spread over the banks.
#if FACTOR_TF32
#define PAD_A (TRANS_A ? 8 : 4)
#define PAD_B (TRANS_B ? 4 : 8)
#elif FACTOR_F32
#define PAD_A 4
#define PAD_B 4
#else
#define PAD_A 8
#define PAD_B 8
#endif

#if FACTOR_F32
#include "cuda/fma.cuh"
#elif MMA
#include "cuda/mma.cuh"
#else
#include "cuda/wmma.cuh"
#endif

// A block as it is multiplied.
struct Part {
    Block high;
#if SPLIT
    Block low;
#endif
};

__device__ __forceinline__ void round_part(Part &part) {
#if FACTOR_TF32
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float x = __uint_as_float(part.high.x[i]);
#if SPLIT
        // Tensor cores cut the last 13 bits off; to add two thirds of a half of what is left rounds well enough, since the
        // low half has the rest, and costs half as much.
        const float nearest = 0x1.555556p-12f;
        part.high.x[i] = __float_as_uint(fmaf(x, nearest, x)) & 0xffffe000u;
        const float low = x - __uint_as_float(part.high.x[i]);
        part.low.x[i] = __float_as_uint(fmaf(low, nearest, low));
#else
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(part.high.x[i]) : "f"(x));
#endif
    }
#endif
}

__device__ __forceinline__ void load_a(Part &part, unsigned from, int pitch) {
    fetch_a(part.high, from, pitch);
    round_part(part);
}

__device__ __forceinline__ void load_b(Part &part, unsigned from, int pitch) {
    fetch_b(part.high, from, pitch);
    round_part(part);
}

__device__ __forceinline__ void add_product(Sums &sums, const Part &a, const Part &b) {
#if SPLIT
    Sums step = {};
    multiply(step, a.low, b.high);
    multiply(step, a.high, b.low);
    multiply(step, a.high, b.high);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        sums.x[i] += step.x[i];
    }
#else
    multiply(sums, a.high, b.high);
#endif
}
