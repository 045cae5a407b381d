// Factor types of a product. On tensor cores: f16, bf16 (FACTOR_BF16), or f32 rounded to tf32, ties away from 0
// (FACTOR_TF32), or signed bytes with sums of i32 (FACTOR_S8). By fused multiply-adds: plain f32 (FACTOR_F32). With
// SPLIT each f32 becomes two tf32, and three of their four products are summed; each step of k is summed apart and
// added in f32, since tensor cores truncate additions to a long sum (H. Ootomo and R. Yokota 2022). Blocks are 16 x
// BLOCK_K of A and BLOCK_K x 16 of B, in the stored order of shared memory, multiplied by WMMA or (MMA) by the mma
// instructions of sm_80.
#pragma once

#include "cuda/numbers.cuh"
#include "cuda/sums.cuh"

#if FACTOR_BF16
typedef Bf16 Factor;
#define BLOCK_K 16
#elif FACTOR_TF32
typedef float Factor;
#define BLOCK_K 8
#elif FACTOR_F32
typedef float Factor;
#define BLOCK_K 2
#elif FACTOR_S8
typedef signed char Factor;
#define BLOCK_K 32
#else
typedef F16 Factor;
#define BLOCK_K 16
#endif

// Padding of a line in shared memory, in elements, so that blocks use different banks.
#if FACTOR_TF32
#define PAD_A (TRANS_A ? 8 : 4)
#define PAD_B (TRANS_B ? 4 : 8)
#elif FACTOR_F32
#define PAD_A 4
#define PAD_B 4
#elif FACTOR_S8
#define PAD_A 16
#define PAD_B 16
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

// A block in registers.
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
        // Tensor cores truncate the last 13 bits. Adding two thirds of half a unit rounds well enough, since the low
        // part holds the rest, and costs half as much.
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
