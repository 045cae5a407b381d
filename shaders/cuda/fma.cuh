// 16 x 16 blocks of f32 sums by fused multiply-adds, more exact than tensor cores; same interface as wmma.cuh. A lane
// has four columns of two rows.
#pragma once

struct Block {
    // A: two rows, two steps of k each. B: two steps of k, four columns each.
    float x[8];
};

struct Sums {
    float x[8];
};

__device__ __forceinline__ float load_float(unsigned from) {
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
    return x;
}

__device__ __forceinline__ void load_floats(float &x, float &y, unsigned from) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(from) : "memory");
}

__device__ __forceinline__ void fetch_a(Block &block, unsigned from, int pitch) {
    const int row = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < 2; i++) {
#if TRANS_A
#pragma unroll
        for (int k = 0; k < 2; k++) {
            block.x[2 * i + k] = load_float(from + (k * pitch + row + i * 8) * (int)sizeof(float));
        }
#else
        load_floats(block.x[2 * i], block.x[2 * i + 1], from + (row + i * 8) * pitch * (int)sizeof(float));
#endif
    }
}

__device__ __forceinline__ void fetch_b(Block &block, unsigned from, int pitch) {
    const int col = threadIdx.x % 4 * 4;
#if TRANS_B
#pragma unroll
    for (int j = 0; j < 4; j++) {
        load_floats(block.x[j], block.x[4 + j], from + (col + j) * pitch * (int)sizeof(float));
    }
#else
#pragma unroll
    for (int k = 0; k < 2; k++) {
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(block.x[4 * k]), "=f"(block.x[4 * k + 1]), "=f"(block.x[4 * k + 2]), "=f"(block.x[4 * k + 3])
                     : "r"(from + (k * pitch + col) * (int)sizeof(float))
                     : "memory");
    }
#endif
}

__device__ __forceinline__ void multiply(Sums &d, const Block &a, const Block &b) {
#pragma unroll
    for (int k = 0; k < 2; k++) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            d.x[i] = fmaf(a.x[i / 4 * 2 + k], b.x[k * 4 + i % 4], d.x[i]);
        }
    }
}

// Stores rows of 16 sums, `pitch` floats apart in shared memory.
__device__ __forceinline__ void store_sums(unsigned to, int pitch, const Sums &d) {
    const int row = threadIdx.x % 32 / 4, col = threadIdx.x % 4 * 4;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const unsigned at = to + ((row + i * 8) * pitch + col) * (int)sizeof(float);
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(d.x[4 * i]), "f"(d.x[4 * i + 1]),
                     "f"(d.x[4 * i + 2]), "f"(d.x[4 * i + 3])
                     : "memory");
    }
}
