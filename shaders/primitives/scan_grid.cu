// All prefixes of an array, or of each row, in one kernel. `scan_grid`: each block totals a tile, waits for all blocks
// at a barrier of the whole grid, and adds up the totals before its own; then the next tiles. Each element is read
// once: a tile stays in registers, and the next is loaded while blocks wait. `scan_rows`: a block scans whole rows. A
// thread holds PIECES chunks of 4 elements, a warp PIECES * 128 consecutive elements.
// Requires: ELEMENT, FUNCTION (its first four), IDENTITY, EXCLUSIVE, REVERSE, PIECES; 512 threads; a cooperative
// launch.
#include "cuda/barrier.cuh"
#include "cuda/pairs.cuh"

typedef unsigned long long u64;

constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
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

// The thread's part of the tile that begins at a position.
__device__ __forceinline__ void load_tile(Quad (&q)[PIECES], const T* input, u64 n, u64 tile, bool aligned) {
    const u64 at = tile + threadIdx.x / 32 * (PIECES * 128) + threadIdx.x % 32 * 4;
#pragma unroll
    for (int p = 0; p < PIECES; p++) q[p] = load(input, n, at + p * 128, aligned);
}

// A tile, scanned as far as the block knows.
struct Scanned {
    // The prefixes within each piece.
    Quad q[PIECES];
    // What lies before each piece in its warp.
    T before[PIECES];
    // What lies before the warp in the tile, and the total of the tile.
    T warp, total;
};

__device__ __forceinline__ void scan_tile(Scanned& s, T (&totals)[WARPS]) {
    const int lane = threadIdx.x % 32;
    T total = T(IDENTITY);
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
#pragma unroll
        for (int i = 1; i < 4; i++) s.q[p].x[i] = combine(s.q[p].x[i - 1], s.q[p].x[i]);
        T sum = s.q[p].x[3];
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const T left = __shfl_up_sync(ALL, sum, d);
            if (lane >= d) sum = combine(left, sum);
        }
        const T left = __shfl_up_sync(ALL, sum, 1);
        s.before[p] = lane > 0 ? combine(total, left) : total;
        total = combine(total, __shfl_sync(ALL, sum, 31));
    }
    if (lane == 0) totals[threadIdx.x / 32] = total;
    __syncthreads();
    s.warp = s.total = T(IDENTITY);
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        if (w == threadIdx.x / 32) s.warp = s.total;
        s.total = combine(s.total, totals[w]);
    }
}

// Writes the tile that begins at a position, given what lies before it.
__device__ __forceinline__ void store_tile(const Scanned& s, T* output, u64 n, u64 tile, T prefix, bool aligned) {
    const u64 at = tile + threadIdx.x / 32 * (PIECES * 128) + threadIdx.x % 32 * 4;
    prefix = combine(prefix, s.warp);
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const T b = combine(prefix, s.before[p]);
        Quad out;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            out.x[i] = EXCLUSIVE ? (i > 0 ? combine(b, s.q[p].x[i - 1]) : b) : combine(b, s.q[p].x[i]);
        }
        store(output, n, at + p * 128, aligned, out);
    }
}

// What the blocks before this one have, and what all have.
__device__ __forceinline__ void total_of_grid(const volatile T* totals, T& before, T& all) {
    __shared__ T parts[2][WARPS];
    before = all = T(IDENTITY);
    for (unsigned b = threadIdx.x; b < gridDim.x; b += THREADS) {
        const T total = totals[b];
        if (b < blockIdx.x) before = combine(before, total);
        all = combine(all, total);
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
        before = combine(before, __shfl_xor_sync(ALL, before, d));
        all = combine(all, __shfl_xor_sync(ALL, all, d));
    }
    if (threadIdx.x % 32 == 0) {
        parts[0][threadIdx.x / 32] = before;
        parts[1][threadIdx.x / 32] = all;
    }
    __syncthreads();
    before = all = T(IDENTITY);
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        before = combine(before, parts[0][w]);
        all = combine(all, parts[1][w]);
    }
}

// `totals` has room for two a block: of this turn, and of the one before, which others may be reading still.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
scan_grid(const T* input, T* output, T* totals, unsigned* arrived, u64 n) {
    __shared__ T warps[WARPS];
    const u64 turn = u64(gridDim.x) * TILE;
    const bool aligned = !REVERSE || n % 4 == 0;
    T carry = T(IDENTITY);
    u64 tile = blockIdx.x * u64(TILE);
    Quad next[PIECES];
    load_tile(next, input, n, tile, aligned);
    unsigned number = 1;
    for (u64 first = 0; first < n; first += turn, tile += turn, number++) {
        Scanned s;
#pragma unroll
        for (int p = 0; p < PIECES; p++) s.q[p] = next[p];
        scan_tile(s, warps);
        T before = T(IDENTITY), all = s.total;
        // One block has one tile.
        if (gridDim.x > 1) {
            T* mine = totals + number % 2 * gridDim.x;
            if (threadIdx.x == 0) mine[blockIdx.x] = s.total;
            grid_arrive(arrived);
            if (first + turn < n) load_tile(next, input, n, tile + turn, aligned);
            grid_wait(arrived, number);
            total_of_grid(mine, before, all);
        }
        store_tile(s, output, n, tile, combine(carry, before), aligned);
        carry = combine(carry, all);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) scan_rows(const T* input, T* output, u64 n, u64 rows) {
    __shared__ T warps[2][WARPS];
    const bool aligned = n % 4 == 0;
    int side = 0;
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        T carry = T(IDENTITY);
        for (u64 tile = 0; tile < n; tile += TILE) {
            Scanned s;
            load_tile(s.q, input + row * n, n, tile, aligned);
            // Two sides, so that one barrier a tile is enough.
            scan_tile(s, warps[side]);
            side ^= 1;
            store_tile(s, output + row * n, n, tile, carry, aligned);
            carry = combine(carry, s.total);
        }
    }
}
