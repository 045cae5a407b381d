// Zip: z = f(x, y), element by element. A thread computes four neighbouring elements as vectors; the last one of the
// grid up to three less.
// Requires: ELEMENT, FUNCTION; 256 threads.
#include "cuda/pairs.cuh"

typedef unsigned long long u64;

extern "C" __global__ void __launch_bounds__(256) zip(const T* x, const T* y, T* z, u64 n) {
    const u64 at = (blockIdx.x * u64(256) + threadIdx.x) * 4;
    if (at + 4 <= n) {
        const Quad a = *reinterpret_cast<const Quad*>(x + at), b = *reinterpret_cast<const Quad*>(y + at);
        Quad c;
#pragma unroll
        for (int i = 0; i < 4; i++) c.x[i] = combine(a.x[i], b.x[i]);
        *reinterpret_cast<Quad*>(z + at) = c;
    } else {
        for (u64 i = at; i < n; i++) z[i] = combine(x[i], y[i]);
    }
}
