// Products by warpgroups (Hopper). Blocks stay and walk over tiles of C: one thread has the copy engine fill stages of
// shared memory, and CONSUMERS warpgroups multiply them, each 64 rows by TILE_N columns of its tile. Two blocks may
// form a cluster, of tiles one below the other (CLUSTER_M) or side by side (CLUSTER_N): each loads half of the factor
// that they share, for both. Elements out of range arrive as zeros. The epilogue is included before. A_MAJOR: rows of
// op(A) are innermost in memory; B_MAJOR: columns of op(B) are; tf32 and bytes have neither. SPLIT: each f32 comes as
// two of tf32, in two places (gemm_pack.cu), and three of their four products are summed.
#pragma once

#include "cuda/hopper.cuh"

#define TILE_M (64 * CONSUMERS)
#define CLUSTER (CLUSTER_M * CLUSTER_N)
#define LINE_BYTES 128 // of a row in a stage: what the swizzle is for
#if FACTOR_TF32
#define TILE_K 32
#elif FACTOR_S8
#define TILE_K 128
#else
#define TILE_K 64
#endif
#if SPLIT
#define PARTS 2
#else
#define PARTS 1
#endif
#define A_BYTES (TILE_M * LINE_BYTES)
#define B_BYTES (TILE_N * LINE_BYTES)
#define STAGE_BYTES (PARTS * (A_BYTES + B_BYTES))
#define BLOCK_BYTES (64 * LINE_BYTES) // 64 rows or columns of a stage
#if CONSUMERS == 2
#define REGISTERS 232
#define REGISTERS_LEFT 40
#else
#define REGISTERS 160
#define REGISTERS_LEFT 32
#endif
// Tiles one below the other that blocks of a wave share: their factors stay in the second cache.
#define BAND (2048 / (TILE_M * CLUSTER_M))

#if TILE_N == 256
#define SUMS 128
#define COLUMNS "m64n256"
#elif TILE_N == 192
#define SUMS 96
#define COLUMNS "m64n192"
#elif TILE_N == 128
#define SUMS 64
#define COLUMNS "m64n128"
#else
#define SUMS 32
#define COLUMNS "m64n64"
#endif
#if FACTOR_TF32
#define SHAPE COLUMNS "k8.f32.tf32.tf32"
#elif FACTOR_S8
#define SHAPE COLUMNS "k32.s32.s8.s8"
#elif FACTOR_BF16
#define SHAPE COLUMNS "k16.f32.bf16.bf16"
#else
#define SHAPE COLUMNS "k16.f32.f16.f16"
#endif
#if FACTOR_TF32 || FACTOR_S8
#define MAJORS ""
#elif A_MAJOR && B_MAJOR
#define MAJORS ", 1, 1"
#elif A_MAJOR
#define MAJORS ", 1, 0"
#elif B_MAJOR
#define MAJORS ", 0, 1"
#else
#define MAJORS ", 0, 0"
#endif
// PRODUCT with the number of sums spelled out.
#define MULTIPLY(sums, d, a, b, add) PRODUCT(sums, SHAPE, MAJORS, d, a, b, add)

// The step of descriptors for the next 32 bytes of the inner extent.
#define A_STEP ((A_MAJOR ? 16 * LINE_BYTES : 32) >> 4)
#define B_STEP ((B_MAJOR ? 16 * LINE_BYTES : 32) >> 4)

// Sums leave through shared memory of the warp, 64 columns of 8 rows at a time: rows of whole lines, without bank
// conflicts.
#define OUT_PITCH 72
#define OUT_WARP (8 * OUT_PITCH)

// The place of a tile of C.
struct Tile {
    int row, col, product;
};

// Products may be cut into `slices` of k, which are products of their own in C.
struct Walk {
    int tiles_m, tiles_n, count, steps, slices, slice_steps;

    // Counts the tiles of a cluster as one.
    __device__ Walk(int m, int n, int k, int products, int slices, int slice_k) : slices(slices) {
        tiles_m = (m + TILE_M * CLUSTER_M - 1) / (TILE_M * CLUSTER_M);
        tiles_n = (n + TILE_N * CLUSTER_N - 1) / (TILE_N * CLUSTER_N);
        count = tiles_m * tiles_n * products * slices;
        steps = (k + TILE_K - 1) / TILE_K;
        slice_steps = (slice_k + TILE_K - 1) / TILE_K;
    }

    // The first step of a tile's slice.
    __device__ int first_step(const Tile &at) const { return at.product % slices * slice_steps; }

    __device__ int steps_of(const Tile &at) const { return min(steps - first_step(at), slice_steps); }

    __device__ Tile tile(int index) const {
        const int product = index / (tiles_m * tiles_n);
        const int within = index - product * tiles_m * tiles_n;
        const int first = within / (BAND * tiles_n) * BAND;
        const int rows = min(tiles_m - first, BAND);
        const int inside = within - first * tiles_n;
        const int row = (first + inside % rows) * CLUSTER_M, col = inside / rows * CLUSTER_N, rank = blockIdx.x % CLUSTER;
        return {(row + rank % CLUSTER_M) * TILE_M, (col + rank / CLUSTER_M) * TILE_N, product};
    }
};

// Loads a tile of a factor, SIDE rows or columns of the result from `at` on: all of it, or one of SHARE parts, for the
// `blocks` of the cluster that share it.
template <int SIDE, bool MAJOR, int SHARE>
__device__ __forceinline__ void fetch_side(unsigned to, const TensorMap *map, unsigned barrier, int at, int k, int product,
                                           int part, unsigned blocks) {
    if (MAJOR) {
        const int line = part * (TILE_K / SHARE);
#pragma unroll
        for (int i = 0; i < SIDE; i += 64)
            copy_box(to + (i + line) * LINE_BYTES, map, barrier, at + i, k + line, product, blocks);
    } else {
        const int line = part * (SIDE / SHARE);
        copy_box(to + line * LINE_BYTES, map, barrier, k, at + line, product, blocks);
    }
}

// The work of one thread: loads tiles of the factors into the stages as these become free.
__device__ void fetch(const Walk &walk, unsigned stages, unsigned full, unsigned empty, const TensorMap *const *a,
                      const TensorMap *const *b, int each_a, int each_b) {
    Ring<STAGES> ring;
    // This block's place in the cluster, and the blocks of its row and column.
    const int down = blockIdx.x % CLUSTER_M, across = blockIdx.x % CLUSTER / CLUSTER_M;
    const unsigned in_row = CLUSTER_N > 1 ? ((1 << CLUSTER) - 1) / ((1 << CLUSTER_M) - 1) << down : 0;
    const unsigned in_column = CLUSTER_M > 1 ? ((1 << CLUSTER_M) - 1) << CLUSTER_M * across : 0;
    for (int index = blockIdx.x / CLUSTER; index < walk.count; index += gridDim.x / CLUSTER) {
        const Tile at = walk.tile(index);
        const int product = at.product / walk.slices, first = walk.first_step(at), steps = walk.steps_of(at);
        const int product_a = product * each_a, product_b = product * each_b;
        for (int step = 0; step < steps; step++, ring.advance()) {
            const unsigned barrier = full + 8 * ring.stage;
            const int k = (first + step) * TILE_K;
            unsigned to = stages + ring.stage * STAGE_BYTES;
            barrier_wait(empty + 8 * ring.stage, ring.parity ^ 1);
            barrier_expect(barrier, STAGE_BYTES);
#pragma unroll
            for (int part = 0; part < PARTS; part++, to += A_BYTES)
                fetch_side<TILE_M, A_MAJOR, CLUSTER_N>(to, a[part], barrier, at.row, k, product_a, across, in_row);
#pragma unroll
            for (int part = 0; part < PARTS; part++, to += B_BYTES)
                fetch_side<TILE_N, B_MAJOR, CLUSTER_M>(to, b[part], barrier, at.col, k, product_b, down, in_column);
        }
    }
}

// Multiplies the tiles of the inner extent as they arrive.
__device__ void multiply_tile(Sum (&sums)[SUMS], Ring<STAGES> &ring, int steps, unsigned stages, unsigned full,
                              unsigned empty) {
    const int lane = threadIdx.x % 32;
    const auto release = [&](int stage) {
#if CLUSTER > 1
        if (lane < CLUSTER) barrier_arrive_at(empty + 8 * stage, lane);
#else
        if (lane == 0) barrier_arrive(empty + 8 * stage);
#endif
    };
#if SPLIT
    float step_sums[SUMS];
#else
    int last = 0;
#endif
#pragma unroll
    for (int i = 0; i < SUMS; i++) sums[i] = 0;
    for (int step = 0; step < steps; step++, ring.advance()) {
        barrier_wait(full + 8 * ring.stage, ring.parity);
        const unsigned base = stages + ring.stage * STAGE_BYTES;
        const unsigned long long a = matrix_descriptor(base + threadIdx.x / 128 * BLOCK_BYTES, BLOCK_BYTES, 1024);
        const unsigned long long b = matrix_descriptor(base + PARTS * A_BYTES, BLOCK_BYTES, 1024);
#if SPLIT
        // Tensor cores truncate when they add to a long sum: each step is summed afresh and added in f32.
        pin(step_sums);
        products_begin();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            MULTIPLY(SUMS, step_sums, a + (A_BYTES >> 4) + i * A_STEP, b + i * B_STEP, i > 0);
            MULTIPLY(SUMS, step_sums, a + i * A_STEP, b + (B_BYTES >> 4) + i * B_STEP, 1);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) MULTIPLY(SUMS, step_sums, a + i * A_STEP, b + i * B_STEP, 1);
        products_commit();
        products_wait<0>();
        pin(step_sums);
        release(ring.stage);
#pragma unroll
        for (int i = 0; i < SUMS; i++) sums[i] += step_sums[i];
#else
        pin(sums);
        products_begin();
#pragma unroll
        for (int i = 0; i < 4; i++) MULTIPLY(SUMS, sums, a + i * A_STEP, b + i * B_STEP, 1);
        products_commit();
        pin(sums);
        // The next step's products follow without a gap; nobody reads the stage before.
        products_wait<1>();
        if (step > 0) release(last);
        last = ring.stage;
#endif
    }
#if !SPLIT
    products_wait<0>();
    pin(sums);
    if (steps > 0) release(last);
#endif
}

// All products of a batch.
struct Products {
    unsigned each_a, each_b, products, m, n, k;
    Element *c;
    unsigned long long ldc, stride_c;
    unsigned slices, slice_k;

    __device__ __forceinline__ void run(const TensorMap *const *a, const TensorMap *const *b, const Epilogue &end) const {
        extern __shared__ __align__(1024) unsigned char shared[];
        __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
        const unsigned stages = shared_address(shared), full = shared_address(barriers), empty = full + 8 * STAGES;
        if (threadIdx.x == 0) {
            for (int s = 0; s < STAGES; s++) {
                barrier_init(full + 8 * s, 1);
                barrier_init(empty + 8 * s, 4 * CONSUMERS * CLUSTER);
            }
            barriers_ready();
        }
        blocks_sync<CLUSTER>();

        const Walk walk(m, n, k, products, slices, slice_k);
        if (threadIdx.x >= 128 * CONSUMERS) {
            fewer_registers<REGISTERS_LEFT>();
            if (threadIdx.x == 128 * CONSUMERS) {
                fetch(walk, stages, full, empty, a, b, each_a, each_b);
            }
        } else {
            more_registers<REGISTERS>();
            Sum *const own = reinterpret_cast<Sum *>(shared + STAGES * STAGE_BYTES) + threadIdx.x / 32 * OUT_WARP;
            Ring<STAGES> ring;
            for (int index = blockIdx.x / CLUSTER; index < walk.count; index += gridDim.x / CLUSTER) {
                Sum sums[SUMS];
                multiply_tile(sums, ring, walk.steps_of(walk.tile(index)), stages, full, empty);
                finish(walk.tile(index), sums, own, end);
            }
        }
        // The other block still loads into this one's memory, and arrives at its barriers.
        if (CLUSTER > 1) blocks_sync<CLUSTER>();
    }

    // Writes a tile. A thread has two neighbours of each eight columns, in two of the warp's sixteen rows.
    __device__ __forceinline__ void finish(Tile at, const Sum (&sums)[SUMS], Sum *own, const Epilogue &end) const {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        Element *const to = c + at.product * stride_c;
        const bool fours = (ldc | stride_c) % 4 == 0;
#pragma unroll
        for (int part = 0; part < TILE_N / 32; part++) {
            const int first_row = at.row + warp * 16 + part % 2 * 8, first_col = at.col + part / 2 * 64;
            __syncwarp();
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const int from = part / 2 * 32 + 4 * i + part % 2 * 2;
                *reinterpret_cast<Sum2 *>(own + lane / 4 * OUT_PITCH + 8 * i + lane % 4 * 2) =
                    two_sums(sums[from], sums[from + 1]);
            }
            __syncwarp();
            if (fours) {
#pragma unroll(ACTIVATION ? 1 : 4) // an activation is long
                for (int i = 0; i < 4; i++) {
                    const int line = 2 * i + lane / 16, row = first_row + line, col = first_col + lane % 16 * 4;
                    const Sum *const from = own + line * OUT_PITCH + lane % 16 * 4;
                    if (row >= m || col >= n) continue;
                    Element *const four_to = to + row * ldc + col;
                    if (col + 4 <= n) {
                        end.four(four_to, row, col, *reinterpret_cast<const Sum4 *>(from));
                    } else {
#pragma unroll 1
                        for (int e = 0; col + e < n; e++) end.one(four_to + e, row, col + e, from[e]);
                    }
                }
            } else {
#pragma unroll(ACTIVATION ? 2 : 8)
                for (int i = 0; i < 16; i++) {
                    const int row = first_row + i / 2, col = first_col + i % 2 * 32 + lane;
                    if (row < m && col < n)
                        end.one(to + row * ldc + col, row, col, own[i / 2 * OUT_PITCH + i % 2 * 32 + lane]);
                }
            }
        }
    }
};
