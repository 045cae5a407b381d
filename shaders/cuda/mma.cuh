// 16 x 16 blocks of sums by two 16 x 8 mma instructions of sm_80; ldmatrix loads registers if the order in shared
// memory allows. Same interface as wmma.cuh, with half the instructions for tf32. Lines of bytes run along k.
#pragma once

#include "cuda/sums.cuh"

struct Block {
    unsigned x[4];
};

struct Sums {
    Sum x[8];
};

#define LDMATRIX(TURN)                                                                                     \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" TURN ".shared.b16 {%0, %1, %2, %3}, [%4];"                \
                 : "=r"(block.x[0]), "=r"(block.x[1]), "=r"(block.x[2]), "=r"(block.x[3])                  \
                 : "r"(from + (line * pitch + column) * (int)sizeof(Factor))                               \
                 : "memory")

__device__ __forceinline__ unsigned load_word(unsigned from) {
    unsigned x;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
    return x;
}

// Each register holds 8 rows of 16 bytes along k: the first and the last eight rows, then the same at the next k.
__device__ __forceinline__ void fetch_a(Block &block, unsigned from, int pitch) {
    const int lane = threadIdx.x % 32;
#if TRANS_A && FACTOR_TF32
    const int line = lane % 4, column = lane / 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        block.x[i] = load_word(from + ((line + i / 2 * 4) * pitch + column + i % 2 * 8) * (int)sizeof(Factor));
    }
#elif TRANS_A
    const int line = lane / 16 * 8 + lane % 8, column = lane / 8 % 2 * 8;
    LDMATRIX(".trans");
#else
    const int line = lane / 8 % 2 * 8 + lane % 8, column = lane / 16 * (BLOCK_K / 2);
    LDMATRIX("");
#endif
}

// Two registers, along k, for the first eight columns, and two for the last.
__device__ __forceinline__ void fetch_b(Block &block, unsigned from, int pitch) {
    const int lane = threadIdx.x % 32;
#if TRANS_B
    const int line = lane / 16 * 8 + lane % 8, column = lane / 8 % 2 * (BLOCK_K / 2);
    LDMATRIX("");
#elif FACTOR_TF32
    const int line = lane % 4, column = lane / 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        block.x[i] = load_word(from + ((line + i % 2 * 4) * pitch + column + i / 2 * 8) * (int)sizeof(Factor));
    }
#else
    const int line = lane / 8 % 2 * 8 + lane % 8, column = lane / 16 * 8;
    LDMATRIX(".trans");
#endif
}

#if FACTOR_TF32
#define MMA_SHAPE "m16n8k8.row.col.f32.tf32.tf32.f32"
#elif FACTOR_S8
#define MMA_SHAPE "m16n8k32.row.col.s32.s8.s8.s32"
#elif FACTOR_BF16
#define MMA_SHAPE "m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#define MMA_SHAPE "m16n8k16.row.col.f32.f16.f16.f32"
#endif

__device__ __forceinline__ void multiply(Sums &d, const Block &a, const Block &b) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        asm("mma.sync.aligned." MMA_SHAPE " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+" SUM_REGISTER(d.x[4 * i]), "+" SUM_REGISTER(d.x[4 * i + 1]), "+" SUM_REGISTER(d.x[4 * i + 2]),
              "+" SUM_REGISTER(d.x[4 * i + 3])
            : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b.x[2 * i]), "r"(b.x[2 * i + 1]));
    }
}

// Stores rows of 16 sums, `pitch` of them apart in shared memory.
__device__ __forceinline__ void store_sums(unsigned to, int pitch, const Sums &d) {
    const int row = threadIdx.x % 32 / 4, col = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const unsigned at = to + ((row + i % 2 * 8) * pitch + col + i / 2 * 8) * (int)sizeof(Sum);
        asm volatile("st.shared.v2." SUM_TYPE " [%0], {%1, %2};" ::"r"(at), SUM_REGISTER(d.x[2 * i]),
                     SUM_REGISTER(d.x[2 * i + 1])
                     : "memory");
    }
}
