// Products by warpgroups (Hopper). Blocks stay and walk over tiles of C: one thread has the copy engine fill stages of
// shared memory, and two warpgroups multiply them, each 64 rows by TILE_N columns of its tile. Elements out of range
// arrive as zeros. The epilogue is included before.
// A_MAJOR: rows of op(A) are innermost in memory; B_MAJOR: columns of op(B) are; tf32 and bytes have neither. SPLIT:
// each f32 comes as two of tf32, in two places (gemm_pack.cu), and three of their four products are summed.
#pragma once

#include "cuda/hopper.cuh"

#define TILE_M 128
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
#define CONSUMERS 2
// Tiles one below the other that blocks of a wave share: their factors stay in the second cache.
#define BAND 16

#if TILE_N == 256
#define SUMS 128
#define COLUMNS "m64n256"
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

// Sums leave through shared memory of the warp, 32 columns of 16 rows at a time; pairs of them hit no bank twice.
#define OUT_COLUMNS 32
#define OUT_PITCH 40
#define OUT_WARP (16 * OUT_PITCH)

// The place of a tile of C.
struct Tile {
    int row, col, product;
};

// Products may be cut into `slices` of k, which are products of their own in C.
struct Walk {
    int tiles_m, tiles_n, count, steps, slices, slice_steps;

    __device__ Walk(int m, int n, int k, int products, int slices, int slice_k) : slices(slices) {
        tiles_m = (m + TILE_M - 1) / TILE_M;
        tiles_n = (n + TILE_N - 1) / TILE_N;
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
        return {(first + inside % rows) * TILE_M, inside / rows * TILE_N, product};
    }
};

// The work of one thread: loads tiles of the factors into the stages as these become free.
__device__ void fetch(const Walk &walk, unsigned stages, unsigned full, unsigned empty, const TensorMap *const *a,
                      const TensorMap *const *b, int each_a, int each_b) {
    Ring<STAGES> ring;
    for (int index = blockIdx.x; index < walk.count; index += gridDim.x) {
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
            for (int part = 0; part < PARTS; part++, to += A_BYTES) {
#if A_MAJOR
                copy_box(to, a[part], barrier, at.row, k, product_a);
                copy_box(to + BLOCK_BYTES, a[part], barrier, at.row + 64, k, product_a);
#else
                copy_box(to, a[part], barrier, k, at.row, product_a);
#endif
            }
#pragma unroll
            for (int part = 0; part < PARTS; part++, to += B_BYTES) {
#if B_MAJOR
#pragma unroll
                for (int i = 0; i < TILE_N; i += 64)
                    copy_box(to + i * LINE_BYTES, b[part], barrier, at.col + i, k, product_b);
#else
                copy_box(to, b[part], barrier, k, at.col, product_b);
#endif
            }
        }
    }
}

// Multiplies the tiles of the inner extent as they arrive.
__device__ void multiply_tile(Sum (&sums)[SUMS], Ring<STAGES> &ring, int steps, unsigned stages, unsigned full,
                              unsigned empty) {
    const int lane = threadIdx.x % 32;
    const auto release = [&](int stage) {
        if (lane == 0) barrier_arrive(empty + 8 * stage);
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
                barrier_init(empty + 8 * s, 4 * CONSUMERS);
            }
            barriers_ready();
        }
        __syncthreads();

        const Walk walk(m, n, k, products, slices, slice_k);
        if (threadIdx.x >= 128 * CONSUMERS) {
            fewer_registers<40>();
            if (threadIdx.x == 128 * CONSUMERS) {
                fetch(walk, stages, full, empty, a, b, each_a, each_b);
            }
            return;
        }
        more_registers<232>();

        Sum *const own = reinterpret_cast<Sum *>(shared + STAGES * STAGE_BYTES) + threadIdx.x / 32 * OUT_WARP;
        Ring<STAGES> ring;
        for (int index = blockIdx.x; index < walk.count; index += gridDim.x) {
            Sum sums[SUMS];
            multiply_tile(sums, ring, walk.steps_of(walk.tile(index)), stages, full, empty);
            finish(walk.tile(index), sums, own, end);
        }
    }

    // Writes a tile. A thread has two neighbours of each eight columns, in two of the warp's sixteen rows.
    __device__ __forceinline__ void finish(Tile at, const Sum (&sums)[SUMS], Sum *own, const Epilogue &end) const {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        Element *const to = c + at.product * stride_c;
        const bool fours = (ldc | stride_c) % 4 == 0;
#pragma unroll
        for (int part = 0; part < TILE_N / OUT_COLUMNS; part++) {
            __syncwarp();
#pragma unroll
            for (int i = 0; i < OUT_COLUMNS / 4; i++) {
                const int from = OUT_COLUMNS / 2 * part + 2 * i;
                *reinterpret_cast<Sum2 *>(own + (lane / 4 + i % 2 * 8) * OUT_PITCH + i / 2 * 8 + lane % 4 * 2) =
                    two_sums(sums[from], sums[from + 1]);
            }
            __syncwarp();
            const int col = at.col + part * OUT_COLUMNS + lane % 8 * 4;
            // Not unrolled: its activation is long.
#pragma unroll 1
            for (int i = 0; i < 4; i++) {
                const int row = at.row + warp * 16 + 4 * i + lane / 8;
                const Sum *const from = own + (4 * i + lane / 8) * OUT_PITCH + lane % 8 * 4;
                if (row >= m || col >= n) continue;
                Element *const four_to = to + row * ldc + col;
                if (fours && col + 4 <= n) {
                    end.four(four_to, row, col, *reinterpret_cast<const Sum4 *>(from));
                } else {
#pragma unroll 1
                    for (int e = 0; e < 4 && col + e < n; e++) end.one(four_to + e, row, col + e, from[e]);
                }
            }
        }
    }
};
