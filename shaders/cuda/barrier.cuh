// A barrier of the whole grid, for cooperative launches, whose blocks all run at once. `arrived` is 0 before the launch and
// counts up; `turn` is 1 at a kernel's first barrier, 2 at its second, and so on.
#pragma once

__device__ __forceinline__ void grid_barrier(unsigned* arrived, unsigned turn) {
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned all = turn * gridDim.x * gridDim.y * gridDim.z;
        unsigned seen;
        // What this block wrote is there before it is counted, and what others wrote before it goes on.
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
        } while (seen < all);
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
    }
    __syncthreads();
}
