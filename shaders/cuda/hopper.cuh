// Hopper (sm_90a) instructions that CUDA C++ lacks: barriers that count bytes, the bulk copy engine, warpgroup
// products. In PTX, so that no header is needed.
#pragma once

#include "cuda/sums.cuh"

// A tensor map encoded by the driver; a __grid_constant__ parameter.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };

__device__ __forceinline__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void barrier_init(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

// Arrives, and adds bytes to wait for in this phase.
__device__ __forceinline__ void barrier_expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives at the barrier of another block of the cluster.
__device__ __forceinline__ void barrier_arrive_at(unsigned barrier, unsigned block) {
    asm volatile(
        "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier), "r"(block) : "memory");
}

// Waits until the phase of this parity ends.
__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
    asm volatile(
        "{\n.reg .pred done;\nAGAIN:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra AGAIN;\n}" ::"r"(barrier), "r"(parity) : "memory");
}

// Makes barriers visible to the copy engine.
__device__ __forceinline__ void barriers_ready() {
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
}

// The current one of COUNT stages, and the parity of its turn.
template <int COUNT> struct Ring {
    int stage = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void advance() {
        if (++stage == COUNT) {
            stage = 0;
            parity ^= 1;
        }
    }
};

__device__ __forceinline__ void named_barrier(unsigned id, unsigned threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void named_arrive(unsigned id, unsigned threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Makes writes to shared memory visible to products and the copy engine.
__device__ __forceinline__ void shared_ready() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Waits for all threads of the block, or of all BLOCKS of the cluster.
template <int BLOCKS> __device__ __forceinline__ void blocks_sync() {
    if (BLOCKS > 1) {
        asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
    } else {
        __syncthreads();
    }
}

// Copies a box of a three-dimensional tensor, innermost dimension first, to shared memory; with `blocks`, a bit for
// each, to the same place in these of the cluster.
__device__ __forceinline__ void copy_box(unsigned to, const TensorMap *map, unsigned barrier, int x, int y, int z,
                                         unsigned blocks = 0) {
    if (blocks > 0) {
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
            "{%3, %4, %5}], [%2], %6;"
            ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"((unsigned short)blocks) : "memory");
    } else {
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
            ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z) : "memory");
    }
}

template <int COUNT> __device__ __forceinline__ void more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT> __device__ __forceinline__ void fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

// Describes a matrix in shared memory to a product, with swizzled rows of 128 bytes. The strides are the bytes between
// blocks of 64 columns (if columns are innermost) and between groups of eight rows.
__device__ __forceinline__ unsigned long long matrix_descriptor(unsigned address, unsigned leading, unsigned stride) {
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16 |
           (unsigned long long)(stride >> 4) << 32 | 1ull << 62;
}

__device__ __forceinline__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most PENDING groups of products are in flight.
template <int PENDING> __device__ __forceinline__ void products_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Keeps the compiler from moving uses of sums across a fence or wait.
template <int COUNT> __device__ __forceinline__ void pin(Sum (&d)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) asm volatile("" : "+" SUM_REGISTER(d[i])::"memory");
}

// Operand numbers of an asm statement, ten at a time.
#define NUMBERS(t) "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9,"
#define NUMBERS_20 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9," NUMBERS(1)
#define NUMBERS_32 NUMBERS_20 NUMBERS(2) "%30,%31"
#define NUMBERS_64 NUMBERS_20 NUMBERS(2) NUMBERS(3) NUMBERS(4) NUMBERS(5) "%60,%61,%62,%63"
#define NUMBERS_96                                                                                                     \
    NUMBERS_20 NUMBERS(2) NUMBERS(3) NUMBERS(4) NUMBERS(5) NUMBERS(6) NUMBERS(7) NUMBERS(8)                            \
    "%90,%91,%92,%93,%94,%95"
#define NUMBERS_128                                                                                                    \
    NUMBERS_20 NUMBERS(2) NUMBERS(3) NUMBERS(4) NUMBERS(5) NUMBERS(6) NUMBERS(7) NUMBERS(8) NUMBERS(9) NUMBERS(10)     \
    NUMBERS(11) "%120,%121,%122,%123,%124,%125,%126,%127"
#define SUM_OF(x) "+" SUM_REGISTER(x)
#define SUMS_8(d, i)                                                                                                   \
    SUM_OF(d[i]), SUM_OF(d[i + 1]), SUM_OF(d[i + 2]), SUM_OF(d[i + 3]), SUM_OF(d[i + 4]), SUM_OF(d[i + 5]),            \
        SUM_OF(d[i + 6]), SUM_OF(d[i + 7])
#define SUMS_32_FROM(d, i) SUMS_8(d, i), SUMS_8(d, i + 8), SUMS_8(d, i + 16), SUMS_8(d, i + 24)
#define SUMS_32(d) SUMS_32_FROM(d, 0)
#define SUMS_64(d) SUMS_32(d), SUMS_32_FROM(d, 32)
#define SUMS_96(d) SUMS_64(d), SUMS_32_FROM(d, 64)
#define SUMS_128(d) SUMS_96(d), SUMS_32_FROM(d, 96)
// Operand numbers after the sums.
#define AFTER_32(i) AFTER_32_##i
#define AFTER_32_0 "%32"
#define AFTER_32_1 "%33"
#define AFTER_32_2 "%34"
#define AFTER_32_3 "%35"
#define AFTER_32_4 "%36"
#define AFTER_64(i) AFTER_64_##i
#define AFTER_64_0 "%64"
#define AFTER_64_1 "%65"
#define AFTER_64_2 "%66"
#define AFTER_64_3 "%67"
#define AFTER_64_4 "%68"
#define AFTER_96(i) AFTER_96_##i
#define AFTER_96_0 "%96"
#define AFTER_96_1 "%97"
#define AFTER_96_2 "%98"
#define AFTER_128(i) AFTER_128_##i
#define AFTER_128_0 "%128"
#define AFTER_128_1 "%129"
#define AFTER_128_2 "%130"

// The signs of both factors, which products of bytes do not take.
#if FACTOR_S8
#define SIGNS ""
#else
#define SIGNS ", 1, 1"
#endif

// d = a b, or d += a b if `add`: 64 rows, two columns for each sum, both factors in shared memory. `shape` names
// columns, inner extent and types; `majors` is ", 1, 0" if the inner extent of A is not innermost in memory.
#define PRODUCT(sums, shape, majors, d, a, b, add)                                                                     \
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " AFTER_##sums(2) ", 0;\n"                                    \
                 "wgmma.mma_async.sync.aligned." shape " {" NUMBERS_##sums "}, " AFTER_##sums(0) ", " AFTER_##sums(1)  \
                 ", adds" SIGNS majors ";\n}"                                                                          \
                 : SUMS_##sums(d) : "l"(a), "l"(b), "r"((int)(add)))

// d += a b with 64 x 16 elements of A in registers, four words for each thread.
#define PRODUCT_OF_REGISTERS(sums, shape, major, d, a, b)                                                              \
    asm volatile("wgmma.mma_async.sync.aligned." shape " {" NUMBERS_##sums "}, {" AFTER_##sums(0) ", " AFTER_##sums(1) \
                 ", " AFTER_##sums(2) ", " AFTER_##sums(3) "}, " AFTER_##sums(4) ", 1, 1, 1" major ";\n"               \
                 : SUMS_##sums(d) : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b))
