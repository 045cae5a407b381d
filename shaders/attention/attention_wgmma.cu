// Attention of each head on warpgroup instructions of Hopper (Dao, "FlashAttention", 2022; Shah et al.,
// "FlashAttention-3", 2024). A block has CONSUMERS warpgroups of 64 queries each, and a producer warpgroup. One thread
// of the producer lets the copy engine load tiles of 128 keys and values; its other warps search tiles that hide keys
// for values that are not finite. A warpgroup computes the next scores while the previous values are summed, and its
// exponentials while its neighbour multiplies. HEAD, 64 or 128, is the largest head size.
#include "cuda/numbers.cuh"
#include "cuda/hopper.cuh"

#define KEYS 128
#define HEAD_BLOCKS (HEAD / 64)
#define ROW_BYTES 128 // 64 elements of a head, the span of the swizzle
#define QUERIES (64 * CONSUMERS)
#define QUERY_BYTES (QUERIES * ROW_BYTES * HEAD_BLOCKS)
#define TILE_BYTES (KEYS * ROW_BYTES * HEAD_BLOCKS)
#define OUT_PITCH 72 // row pitch of output tiles, in elements: avoids bank conflicts

#if HEAD == 128
#define SUMS 64
#define VALUE_COLUMNS "m64n128"
#else
#define SUMS 32
#define VALUE_COLUMNS "m64n64"
#endif
#if FACTOR_BF16
typedef Bf16 Element;
#define TYPES "k16.f32.bf16.bf16"
#else
typedef F16 Element;
#define TYPES "k16.f32.f16.f16"
#endif
#define SCORE_PRODUCT(d, a, b, add) PRODUCT(64, "m64n128" TYPES, ", 0, 0", d, a, b, add)
#define VALUE_PRODUCT(sums, d, a, b) PRODUCT_OF_REGISTERS(sums, VALUE_COLUMNS TYPES, ", 1", d, a, b)

#define SHARERS (128 * CONSUMERS)
#include "cuda/values.cuh"

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1) attention_wgmma(
    const __grid_constant__ TensorMap map_q, const __grid_constant__ TensorMap map_k, const __grid_constant__ TensorMap map_v,
    Element *output, int heads, int kv_heads, int queries, int keys, int head_size, int window, float scale) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[1 + 5 * STAGES];
    __shared__ int spoiled[STAGES]; // the last tile with a value that is not finite
    const unsigned q_tile = shared_address(shared), k_tiles = q_tile + QUERY_BYTES, v_tiles = k_tiles + STAGES * TILE_BYTES;
    const unsigned q_full = shared_address(barriers), k_full = q_full + 8, k_empty = k_full + 8 * STAGES,
                   v_full = k_empty + 8 * STAGES, v_looked = v_full + 8 * STAGES, v_empty = v_looked + 8 * STAGES;
    const int warpgroup = threadIdx.x / 128, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    // With causal, the last queries see the most keys, so they run first.
    const int query = (CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * QUERIES;
    const int head = blockIdx.y, kv = head / heads * kv_heads + head % heads / (heads / kv_heads);
    const Range range = visible(query, queries, keys, window);
    const auto whole = [&](int tile) { return tile >= range.inner && tile < range.ragged; };
    const auto values_of = [&](int stage) { return shared + QUERY_BYTES + (STAGES + stage) * TILE_BYTES; };

    if (threadIdx.x == 0) {
        barrier_init(q_full, 1);
        for (int s = 0; s < STAGES; s++) {
            barrier_init(k_full + 8 * s, 1);
            barrier_init(v_full + 8 * s, 1);
            barrier_init(k_empty + 8 * s, 4 * CONSUMERS);
            barrier_init(v_looked + 8 * s, 3);
            barrier_init(v_empty + 8 * s, 4 * CONSUMERS + 3);
            spoiled[s] = -1;
        }
        barriers_ready();
    }
    __syncthreads();

    if (warpgroup == CONSUMERS) {
        fewer_registers<CONSUMERS == 2 ? 24 : 32>();
        if (threadIdx.x == 128 * CONSUMERS) {
            barrier_expect(q_full, QUERY_BYTES);
            for (int i = 0; i < HEAD_BLOCKS; i++) copy_box(q_tile + i * QUERIES * ROW_BYTES, &map_q, q_full, 64 * i, query, head);
            Ring<STAGES> ring;
#pragma unroll 1
            for (int tile = range.first; tile < range.end; tile++, ring.advance()) {
                const int at = 8 * ring.stage;
                barrier_wait(k_empty + at, ring.parity ^ 1);
                barrier_expect(k_full + at, TILE_BYTES);
                for (int i = 0; i < HEAD_BLOCKS; i++)
                    copy_box(k_tiles + ring.stage * TILE_BYTES + i * KEYS * ROW_BYTES, &map_k, k_full + at, 64 * i, tile * KEYS, kv);
                barrier_wait(v_empty + at, ring.parity ^ 1);
                barrier_expect(v_full + at, TILE_BYTES);
                for (int i = 0; i < HEAD_BLOCKS; i++)
                    copy_box(v_tiles + ring.stage * TILE_BYTES + i * KEYS * ROW_BYTES, &map_v, v_full + at, 64 * i, tile * KEYS, kv);
            }
        } else if (warp > 0) {
            Ring<STAGES> ring;
            for (int tile = range.first; tile < range.end; tile++, ring.advance()) {
                const int at = 8 * ring.stage;
                barrier_wait(v_full + at, ring.parity);
                const auto piece = [&](int i) { return values_of(ring.stage) + 16 * i; };
                if (!whole(tile) && not_finite<Element>(threadIdx.x % 128 - 32, 96, piece)) spoiled[ring.stage] = tile;
                __syncwarp();
                if (lane == 0) {
                    barrier_arrive(v_looked + at);
                    barrier_arrive(v_empty + at);
                }
            }
        }
        return;
    }

    more_registers<CONSUMERS == 2 ? 240 : 160>();
    const int row = query + warpgroup * 64 + warp * 16 + lane / 4; // and the row eight below
    const float in_twos = scale * 1.4426950408889634f;
    const auto release = [&](unsigned barrier) {
        if (lane == 0) barrier_arrive(barrier);
    };
    // Warpgroups take turns on the tensor cores.
    const auto turn = [&]() {
        if (TURNS) named_barrier(1 + warpgroup, 256);
    };
    const auto pass = [&]() {
        if (TURNS) named_arrive(1 + (warpgroup + 1) % CONSUMERS, 256);
    };
    if (TURNS && warpgroup == CONSUMERS - 1) named_arrive(1, 256);

    float scores[64], sums[SUMS];
    unsigned weights[32];
#pragma unroll
    for (int i = 0; i < SUMS; i++) sums[i] = 0.0f;

    const unsigned long long q = matrix_descriptor(q_tile + warpgroup * 64 * ROW_BYTES, 0, 1024);
    const auto multiply_keys = [&](int stage) {
        const unsigned long long k = matrix_descriptor(k_tiles + stage * TILE_BYTES, 0, 1024);
#pragma unroll
        for (int i = 0; i < HEAD / 16; i++) {
            const unsigned long long a = q + ((i / 4 * QUERIES * ROW_BYTES + i % 4 * 32) >> 4);
            const unsigned long long b = k + ((i / 4 * KEYS * ROW_BYTES + i % 4 * 32) >> 4);
            SCORE_PRODUCT(scores, a, b, i > 0);
        }
        products_commit();
    };
    const auto multiply_values = [&](int stage) {
        const unsigned long long v = matrix_descriptor(v_tiles + stage * TILE_BYTES, KEYS * ROW_BYTES, 1024);
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) VALUE_PRODUCT(SUMS, sums, weights + 4 * i, v + (i * 16 * ROW_BYTES >> 4));
        products_commit();
    };
    Softmax softmax;
    const int beside = row + keys - queries;
    const auto weigh = [&](int tile, float (&rescale)[2]) {
        softmax.weigh(scores, in_twos, whole(tile), tile * KEYS, keys, beside, window, rescale);
    };
    // Waits for the values, and replaces those that are not finite. No product may be running.
    const auto await_values = [&](int tile, Ring<STAGES> at) {
        barrier_wait(v_full + 8 * at.stage, at.parity);
        if (whole(tile)) return;
        barrier_wait(v_looked + 8 * at.stage, at.parity);
        if (spoiled[at.stage] != tile) return;
        unsigned char *const values = values_of(at.stage);
        take_out<Element>(
            sums, weights, tile * KEYS, keys, beside, window, [&](int i) { return values + 16 * i; },
            [&](int key, int i) {
                const int piece = key * ROW_BYTES + (i % 8 ^ key % 8) * 16; // swizzled
                return values + i / 8 * KEYS * ROW_BYTES + piece + lane % 4 * 4;
            },
            [] {
                shared_ready();
                named_barrier(1 + CONSUMERS, SHARERS);
            });
    };
    const auto narrow_weights = [&]() {
#pragma unroll
        for (int i = 0; i < 32; i++) weights[i] = two_from_floats(scores[2 * i], scores[2 * i + 1], Element());
    };

    if (range.first < range.end) {
        float rescale[2];
        Ring<STAGES> ring;
        barrier_wait(q_full, 0);
        barrier_wait(k_full, 0);
        turn();
        pin(scores);
        products_begin();
        multiply_keys(0);
        products_wait<0>();
        pin(scores);
        pass();
        release(k_empty);
        weigh(range.first, rescale);
        narrow_weights();
        for (int tile = range.first + 1; tile < range.end; tile++) {
            const Ring<STAGES> before = ring;
            ring.advance();
            if (!whole(tile - 1)) await_values(tile - 1, before);
            barrier_wait(k_full + 8 * ring.stage, ring.parity);
            turn();
            pin(scores);
            pin(sums);
            products_begin();
            multiply_keys(ring.stage);
            barrier_wait(v_full + 8 * before.stage, before.parity);
            multiply_values(before.stage);
            pass();
            products_wait<1>();
            pin(scores);
            release(k_empty + 8 * ring.stage);
            weigh(tile, rescale);
            products_wait<0>();
            pin(sums);
            release(v_empty + 8 * before.stage);
            narrow_weights();
#pragma unroll
            for (int i = 0; i < SUMS; i++) sums[i] *= rescale[i / 2 % 2];
        }
        await_values(range.end - 1, ring);
        pin(sums);
        products_begin();
        multiply_values(ring.stage);
        products_wait<0>();
        pin(sums);
    }

    const float share[2] = {softmax.share(0), softmax.share(1)};
    Element *const own = (Element *)(shared + QUERY_BYTES + 2 * STAGES * TILE_BYTES) + (threadIdx.x / 32) * 16 * OUT_PITCH;
    output += (unsigned long long)head * queries * head_size;
#pragma unroll
    for (int part = 0; part < HEAD_BLOCKS; part++) {
        __syncwarp();
#pragma unroll
        for (int j = 0; j < 8; j++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int i = 4 * (8 * part + j) + 2 * h;
                *(unsigned*)(own + (lane / 4 + 8 * h) * OUT_PITCH + 8 * j + 2 * (lane % 4)) =
                    two_from_floats(sums[i] * share[h], sums[i + 1] * share[h], Element());
            }
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int r = query + warpgroup * 64 + warp * 16 + 4 * i + lane / 8, col = 64 * part + lane % 8 * 8;
            if (r < queries && col < head_size)
                *(uint4*)(output + (unsigned long long)r * head_size + col) = *(const uint4*)(own + (4 * i + lane / 8) * OUT_PITCH + lane % 8 * 8);
        }
    }
}
