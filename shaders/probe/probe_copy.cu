// Measures copy bandwidth: a thread copies four vectors of 16 bytes, a block of 256 threads a contiguous 16 KiB.

typedef unsigned long long u64;

extern "C" __global__ void __launch_bounds__(256) probe_copy(const uint4* input, uint4* output, u64 vectors) {
    const u64 first = blockIdx.x * u64(1024) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const u64 at = first + i * 256;
        if (at < vectors) output[at] = input[at];
    }
}
