// A grid-wide barrier, for cooperative launches. `arrived` is 0 before the launch and counts up; `turn` is 1 at a
// kernel's first barrier, 2 at its second, and so on. Between the two calls a block may do independent work.
#pragma once

__device__ __forceinline__ void grid_arrive(unsigned* arrived) {
    __syncthreads();
    // The block's writes are visible before it counts as arrived.
    if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
}

__device__ __forceinline__ void grid_wait(const unsigned* arrived, unsigned turn) {
    if (threadIdx.x == 0) {
        const unsigned all = turn * gridDim.x * gridDim.y * gridDim.z;
        unsigned seen;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
        } while (seen < all);
    }
    __syncthreads();
}
