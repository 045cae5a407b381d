// 16 x 16 blocks of sums by WMMA, in PTX.
#pragma once

#if FACTOR_BF16
#define WMMA_SHAPE "m16n16k16"
#define WMMA_TYPE "bf16"
#define WMMA_TYPES "f32.bf16.bf16.f32"
#elif FACTOR_TF32
#define WMMA_SHAPE "m16n16k8"
#define WMMA_TYPE "tf32"
#define WMMA_TYPES "f32.tf32.tf32.f32"
#else
#define WMMA_SHAPE "m16n16k16"
#define WMMA_TYPE "f16"
#define WMMA_TYPES "f32.f32"
#endif

#if TRANS_A
#define LAYOUT_A "col"
#else
#define LAYOUT_A "row"
#endif
#if TRANS_B
#define LAYOUT_B "col"
#else
#define LAYOUT_B "row"
#endif

struct Block {
#if FACTOR_BF16 || FACTOR_TF32
    unsigned x[4];
#else
    unsigned x[8];
#endif
};

struct Sums {
    float x[8];
};

#if FACTOR_BF16 || FACTOR_TF32
#define WMMA_LOAD(FACTOR, LAYOUT)                                                                          \
    asm volatile("wmma.load." FACTOR ".sync.aligned." LAYOUT "." WMMA_SHAPE ".shared." WMMA_TYPE           \
                 " {%0, %1, %2, %3}, [%4], %5;"                                                            \
                 : "=r"(block.x[0]), "=r"(block.x[1]), "=r"(block.x[2]), "=r"(block.x[3])                  \
                 : "r"(from), "r"(pitch)                                                                   \
                 : "memory")
#else
#define WMMA_LOAD(FACTOR, LAYOUT)                                                                          \
    asm volatile("wmma.load." FACTOR ".sync.aligned." LAYOUT "." WMMA_SHAPE ".shared." WMMA_TYPE           \
                 " {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"                                            \
                 : "=r"(block.x[0]), "=r"(block.x[1]), "=r"(block.x[2]), "=r"(block.x[3]),                 \
                   "=r"(block.x[4]), "=r"(block.x[5]), "=r"(block.x[6]), "=r"(block.x[7])                  \
                 : "r"(from), "r"(pitch)                                                                   \
                 : "memory")
#endif

__device__ __forceinline__ void fetch_a(Block &block, unsigned from, int pitch) {
    WMMA_LOAD("a", LAYOUT_A);
}

__device__ __forceinline__ void fetch_b(Block &block, unsigned from, int pitch) {
    WMMA_LOAD("b", LAYOUT_B);
}

__device__ __forceinline__ void multiply(Sums &d, const Block &a, const Block &b) {
#if FACTOR_BF16 || FACTOR_TF32
    asm("wmma.mma.sync.aligned." LAYOUT_A "." LAYOUT_B "." WMMA_SHAPE "." WMMA_TYPES
        " {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, {%12, %13, %14, %15},"
        " {%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(d.x[0]), "+f"(d.x[1]), "+f"(d.x[2]), "+f"(d.x[3]), "+f"(d.x[4]), "+f"(d.x[5]), "+f"(d.x[6]), "+f"(d.x[7])
        : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b.x[0]), "r"(b.x[1]), "r"(b.x[2]), "r"(b.x[3]));
#else
    asm("wmma.mma.sync.aligned." LAYOUT_A "." LAYOUT_B "." WMMA_SHAPE "." WMMA_TYPES
        " {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11, %12, %13, %14, %15},"
        " {%16, %17, %18, %19, %20, %21, %22, %23}, {%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(d.x[0]), "+f"(d.x[1]), "+f"(d.x[2]), "+f"(d.x[3]), "+f"(d.x[4]), "+f"(d.x[5]), "+f"(d.x[6]), "+f"(d.x[7])
        : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(a.x[4]), "r"(a.x[5]), "r"(a.x[6]), "r"(a.x[7]),
          "r"(b.x[0]), "r"(b.x[1]), "r"(b.x[2]), "r"(b.x[3]), "r"(b.x[4]), "r"(b.x[5]), "r"(b.x[6]), "r"(b.x[7]));
#endif
}

// Stores rows of 16 sums, `pitch` floats apart in shared memory.
__device__ __forceinline__ void store_sums(unsigned to, int pitch, const Sums &d) {
    asm volatile("wmma.store.d.sync.aligned.row." WMMA_SHAPE ".shared.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}, %9;" ::"r"(to),
                 "f"(d.x[0]), "f"(d.x[1]), "f"(d.x[2]), "f"(d.x[3]), "f"(d.x[4]), "f"(d.x[5]), "f"(d.x[6]), "f"(d.x[7]),
                 "r"(pitch)
                 : "memory");
}
