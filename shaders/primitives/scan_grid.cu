// All prefixes of an array, or of each row, in one kernel. Reduce-then-scan (Merrill and Grimshaw, 2009): each block totals
// its part of the array, waits for all others at a barrier of the whole grid, adds up the totals before its own, and scans
// its part, tile by tile. `scan_rows` is the same without the barrier: a block scans whole rows.
// A thread holds 4 pieces of 4 elements of a tile of 4096, a warp 512 that follow each other; all accesses are coalesced.
// Requires: ELEMENT, FUNCTION (its first four), IDENTITY, EXCLUSIVE, REVERSE; 256 threads; a cooperative launch.
#include "cuda/barrier.cuh"
#include "cuda/pairs.cuh"

typedef unsigned long long u64;

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int PIECES = 4;
constexpr int TILE = THREADS * PIECES * 4;
constexpr unsigned ALL = 0xffffffffu;

// Positions count in the order of the scan.
__device__ __forceinline__ u64 place(u64 position, u64 n) { return REVERSE ? n - 1 - position : position; }

// Four elements from a position that is a multiple of 4. `aligned`: four that lie together are a vector.
__device__ __forceinline__ Quad load(const T* input, u64 n, u64 position, bool aligned) {
    Quad q;
    if (aligned && position + 4 <= n) {
        const Quad v = *reinterpret_cast<const Quad*>(input + (REVERSE ? n - 4 - position : position));
#pragma unroll
        for (int i = 0; i < 4; i++) q.x[i] = v.x[REVERSE ? 3 - i : i];
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) q.x[i] = position + i < n ? input[place(position + i, n)] : T(IDENTITY);
    }
    return q;
}

__device__ __forceinline__ void store(T* output, u64 n, u64 position, bool aligned, Quad q) {
    if (aligned && position + 4 <= n) {
        Quad v;
#pragma unroll
        for (int i = 0; i < 4; i++) v.x[i] = q.x[REVERSE ? 3 - i : i];
        *reinterpret_cast<Quad*>(output + (REVERSE ? n - 4 - position : position)) = v;
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (position + i < n) output[place(position + i, n)] = q.x[i];
        }
    }
}

// The total of one value a thread, in every thread.
__device__ T total_of_block(T value) {
    __shared__ T totals[WARPS];
#pragma unroll
    for (int d = 16; d > 0; d /= 2) value = combine(value, __shfl_xor_sync(ALL, value, d));
    __syncthreads();
    if (threadIdx.x % 32 == 0) totals[threadIdx.x / 32] = value;
    __syncthreads();
    T total = totals[0];
#pragma unroll
    for (int w = 1; w < WARPS; w++) total = combine(total, totals[w]);
    return total;
}

// Scans the tiles from `begin` to `end` (positions); `carry` is the total of what lies before.
__device__ void scan_tiles(const T* input, T* output, u64 n, u64 begin, u64 end, T carry, bool aligned) {
    __shared__ T totals[2][WARPS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int side = 0;
    for (u64 tile = begin; tile < end; tile += TILE, side ^= 1) {
        const u64 at = tile + warp * (PIECES * 128) + lane * 4;
        Quad q[PIECES];
#pragma unroll
        for (int p = 0; p < PIECES; p++) q[p] = load(input, n, at + p * 128, aligned);
        T total = T(IDENTITY), before[PIECES];
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
#pragma unroll
            for (int i = 1; i < 4; i++) q[p].x[i] = combine(q[p].x[i - 1], q[p].x[i]);
            T sum = q[p].x[3];
#pragma unroll
            for (int d = 1; d < 32; d *= 2) {
                const T left = __shfl_up_sync(ALL, sum, d);
                if (lane >= d) sum = combine(left, sum);
            }
            const T left = __shfl_up_sync(ALL, sum, 1);
            before[p] = lane > 0 ? combine(total, left) : total;
            total = combine(total, __shfl_sync(ALL, sum, 31));
        }
        // Two sides, so that one barrier a tile is enough.
        if (lane == 0) totals[side][warp] = total;
        __syncthreads();
        T prefix = carry;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            if (w == warp) prefix = carry;
            carry = combine(carry, totals[side][w]);
        }
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const T b = combine(prefix, before[p]);
            Quad out;
#pragma unroll
            for (int i = 0; i < 4; i++) out.x[i] = EXCLUSIVE ? (i > 0 ? combine(b, q[p].x[i - 1]) : b) : combine(b, q[p].x[i]);
            store(output, n, at + p * 128, aligned, out);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
scan_grid(const T* input, T* output, T* totals, unsigned* arrived, u64 n) {
    const u64 tiles = (n + TILE - 1) / TILE;
    const u64 begin = blockIdx.x * tiles / gridDim.x * TILE, end = (blockIdx.x + 1) * tiles / gridDim.x * TILE;
    const bool aligned = !REVERSE || n % 4 == 0;
    T before = T(IDENTITY);
    if (gridDim.x > 1) {
        T mine = T(IDENTITY);
        for (u64 tile = begin; tile < end; tile += TILE) {
            Quad q[PIECES];
#pragma unroll
            for (int p = 0; p < PIECES; p++) q[p] = load(input, n, tile + p * (THREADS * 4) + threadIdx.x * 4, aligned);
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                mine = combine(mine, combine(combine(q[p].x[0], q[p].x[1]), combine(q[p].x[2], q[p].x[3])));
            }
        }
        mine = total_of_block(mine);
        if (threadIdx.x == 0) totals[blockIdx.x] = mine;
        grid_barrier(arrived, 1);
        for (unsigned b = threadIdx.x; b < blockIdx.x; b += THREADS) {
            before = combine(before, *const_cast<volatile T*>(totals + b));
        }
        before = total_of_block(before);
    }
    scan_tiles(input, output, n, begin, end, before, aligned);
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) scan_rows(const T* input, T* output, u64 n, u64 rows) {
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        scan_tiles(input + row * n, output + row * n, n, 0, n, T(IDENTITY), n % 4 == 0);
        __syncthreads();
    }
}
