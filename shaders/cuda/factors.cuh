// The factors of a product on tensor cores: f16, FACTOR_BF16, or f32 that are rounded to tf32 (FACTOR_TF32), the nearest with
// ties away from 0. They are multiplied in blocks of 16 x BLOCK_K of A and BLOCK_K x 16 of B, which come from shared
// memory in the order in which they are stored, by WMMA or (MMA) by the instructions of sm_80 that it is made of there.
#pragma once

#include "cuda/numbers.cuh"

#if FACTOR_BF16
typedef Bf16 Factor;
#define BLOCK_K 16
#elif FACTOR_TF32
typedef float Factor;
#define BLOCK_K 8
#else
typedef F16 Factor;
#define BLOCK_K 16
#endif

// Elements behind a line in shared memory, so that blocks spread over the banks.
#if FACTOR_TF32
#define PAD_A (TRANS_A ? 8 : 4)
#define PAD_B (TRANS_B ? 4 : 8)
#else
#define PAD_A 8
#define PAD_B 8
#endif

// Rounds the N registers of a block.
template <int N> __device__ __forceinline__ void round_block(unsigned (&x)[N]) {
#if FACTOR_TF32
#pragma unroll
    for (int i = 0; i < N; i++) {
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(x[i]) : "f"(__uint_as_float(x[i])));
    }
#endif
}

#if MMA
#include "cuda/mma.cuh"
#else
#include "cuda/wmma.cuh"
#endif
