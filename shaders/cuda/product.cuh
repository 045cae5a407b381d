// The tile engine of products: a block of threads sums a TILE_M x TILE_N tile over k, TILE_K at a time, from STAGES
// tiles of each factor in shared memory. Each of WARPS_M x WARPS_N warps owns a part of the tile in blocks of 16 x 16.
// The user provides the copies of factors (a type with begin, end and advance) and the epilogue.
#pragma once

#define THREADS (32 * WARPS_M * WARPS_N)

#include "cuda/factors.cuh"
#include "cuda/copy.cuh"

#define LINES_A (TRANS_A ? TILE_K : TILE_M)
#define LENGTH_A (TRANS_A ? TILE_M : TILE_K)
#define LINES_B (TRANS_B ? TILE_N : TILE_K)
#define LENGTH_B (TRANS_B ? TILE_K : TILE_N)
#define PITCH_A (LENGTH_A + PAD_A)
#define PITCH_B (LENGTH_B + PAD_B)

constexpr int PART_M = TILE_M / WARPS_M;
constexpr int PART_N = TILE_N / WARPS_N;
constexpr int BLOCKS_M = PART_M / 16;
constexpr int BLOCKS_N = PART_N / 16;
constexpr int BLOCKS_K = TILE_K / BLOCK_K;
constexpr int BYTES_A = LINES_A * PITCH_A * sizeof(Factor);
constexpr int BYTES_B = LINES_B * PITCH_B * sizeof(Factor);
constexpr int BYTES_STAGE = BYTES_A + BYTES_B;
// Where a warp turns its sums into 16 lines.
constexpr int PITCH_END = PART_N + 8;
constexpr int BYTES_END = 16 * PITCH_END * sizeof(Sum);

static_assert(TILE_K % (2 * BLOCK_K) == 0 && PART_M % 16 == 0 && PART_N % 16 == 0, "whole blocks");
static_assert(THREADS / 32 * BYTES_END <= STAGES * BYTES_STAGE, "the end fits where the tiles were");

extern __shared__ __align__(128) unsigned char shared_memory[];

__device__ __forceinline__ unsigned shared_address() {
    unsigned at;
    asm("{ .reg .u64 wide; cvta.to.shared.u64 wide, %1; cvt.u32.u64 %0, wide; }" : "=r"(at) : "l"(shared_memory));
    return at;
}

struct TilePlace {
    unsigned long long product;
    unsigned row, col;
};

// The tile with this index, over all products. Groups of eight tile rows go column by column, so that neighbours share
// factors in the L2 cache.
__device__ __forceinline__ TilePlace tile_place(unsigned long long at, unsigned m, unsigned n) {
    const unsigned tiles_m = (m + TILE_M - 1) / TILE_M, tiles_n = (n + TILE_N - 1) / TILE_N;
    const unsigned long long tiles = (unsigned long long)tiles_m * tiles_n, band = 8ull * tiles_n;
    TilePlace place;
    place.product = at / tiles;
    const unsigned long long tile = at - place.product * tiles, first = tile / band;
    const unsigned inside = (unsigned)(tile - first * band), first_row = (unsigned)first * 8;
    const unsigned rows = min(tiles_m - first_row, 8u);
    place.row = (first_row + inside % rows) * TILE_M;
    place.col = inside / rows * TILE_N;
    return place;
}

struct SumsOfWarp {
    Sums blocks[BLOCKS_M][BLOCKS_N];
};

// The blocks that a warp multiplies at once: both factors for BLOCK_K steps of k.
struct Parts {
    Part a[BLOCKS_M];
    Part b[BLOCKS_N];

    __device__ __forceinline__ void load(unsigned stage, int k) {
        const int warp = threadIdx.x / 32;
        const int row = warp / WARPS_N * PART_M;
        const int col = warp % WARPS_N * PART_N;
        const unsigned from_a = stage + (TRANS_A ? row : row * PITCH_A) * sizeof(Factor);
        const unsigned from_b = stage + BYTES_A + (TRANS_B ? col * PITCH_B : col) * sizeof(Factor);
#pragma unroll
        for (int i = 0; i < BLOCKS_M; i++) {
            const int at = TRANS_A ? k * PITCH_A + i * 16 : i * 16 * PITCH_A + k;
            load_a(a[i], from_a + at * sizeof(Factor), PITCH_A);
        }
#pragma unroll
        for (int j = 0; j < BLOCKS_N; j++) {
            const int at = TRANS_B ? j * 16 * PITCH_B + k : k * PITCH_B + j * 16;
            load_b(b[j], from_b + at * sizeof(Factor), PITCH_B);
        }
    }

    __device__ __forceinline__ void multiply_into(SumsOfWarp &sums) const {
#pragma unroll
        for (int i = 0; i < BLOCKS_M; i++) {
#pragma unroll
            for (int j = 0; j < BLOCKS_N; j++) {
                // Back and forth, so that consecutive products share a block.
                const int column = i % 2 ? BLOCKS_N - 1 - j : j;
                add_product(sums.blocks[i][column], a[i], b[column]);
            }
        }
    }
};

// Sums over k. `source.begin` starts to copy the next tile of both factors.
template <typename CopyA, typename CopyB, typename Source>
__device__ __forceinline__ void sum_products(SumsOfWarp &sums, int k, CopyA &a, CopyB &b, const Source &source) {
    const unsigned shared = shared_address();
    const int steps = (k + TILE_K - 1) / TILE_K;
#pragma unroll 1
    for (int step = 0; step < STAGES - 1; step++) {
        if (step < steps) {
            const unsigned to = shared + step * BYTES_STAGE;
            source.begin(a, b, to, to + BYTES_A, step * TILE_K);
            a.end(to);
            b.end(to + BYTES_A);
        }
        copy_commit();
    }
    copy_wait<STAGES - 2>();
    __syncthreads();
    // Blocks are loaded during the products of the blocks before.
    Parts parts[2];
    parts[0].load(shared, 0);
    int slot = 0;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        const int next = step + STAGES - 1;
        const unsigned to = shared + (slot == 0 ? STAGES - 1 : slot - 1) * BYTES_STAGE;
#pragma unroll
        for (int block = 0; block < BLOCKS_K; block++) {
            if (block == BLOCKS_K - 1) {
                if (next < steps) {
                    a.end(to);
                    b.end(to + BYTES_A);
                }
                copy_wait<STAGES - 2>();
                __syncthreads();
                slot = slot == STAGES - 1 ? 0 : slot + 1;
            }
            parts[(block + 1) % 2].load(shared + slot * BYTES_STAGE, (block + 1) % BLOCKS_K * BLOCK_K);
            if (block == 0) {
                if (next < steps) {
                    source.begin(a, b, to, to + BYTES_A, next * TILE_K);
                }
                copy_commit();
            }
            parts[block % 2].multiply_into(sums);
        }
    }
    copy_wait<0>();
    __syncthreads();
}

// Passes the sums within `m` x `n` of the tile to `result.four(row, col, sums)`, four columns at a time if `fours`,
// else to `result.one(row, col, sum)`.
template <typename Result>
__device__ __forceinline__ void end_tile(const SumsOfWarp &sums, int m, int n, bool fours, const Result &result) {
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int first_row = warp / WARPS_N * PART_M;
    const int first_col = warp % WARPS_N * PART_N;
    const Sum *strip = reinterpret_cast<const Sum *>(shared_memory + warp * BYTES_END);
    const unsigned to = shared_address() + warp * BYTES_END;
#pragma unroll
    for (int i = 0; i < BLOCKS_M; i++) {
#pragma unroll
        for (int j = 0; j < BLOCKS_N; j++) {
            store_sums(to + j * 16 * (int)sizeof(Sum), PITCH_END, sums.blocks[i][j]);
        }
        __syncwarp();
        const int row = first_row + i * 16;
        if (fours) {
#pragma unroll 4
            for (int at = lane * 4; at < 16 * PART_N; at += 128) {
                const int line = at / PART_N, col = at % PART_N;
                const int left = n - first_col - col;
                if (row + line < m && left > 0) {
                    const Sum *four = strip + line * PITCH_END + col;
                    if (left >= 4) {
                        result.four(row + line, first_col + col, *reinterpret_cast<const Sum4 *>(four));
                    } else {
#pragma unroll 1
                        for (int x = 0; x < left; x++) {
                            result.one(row + line, first_col + col + x, four[x]);
                        }
                    }
                }
            }
        } else {
#pragma unroll 8
            for (int at = lane; at < 16 * PART_N; at += 32) {
                const int line = at / PART_N, col = at % PART_N;
                if (row + line < m && first_col + col < n) {
                    result.one(row + line, first_col + col, strip[line * PITCH_END + col]);
                }
            }
        }
        __syncwarp();
    }
}
