// Attention of each head by products of warpgroups (Hopper): FlashAttention's online softmax (Dao, 2022) in the manner of
// its third version (Shah et al., 2024). A block has CONSUMERS warpgroups of 64 queries each and one more, of which one
// thread has the copy engine bring tiles of 128 keys and their values. A warpgroup computes the next scores while the
// values of the last are summed, and its exponentials while its neighbour's products run. Heads up to HEAD, 64 or 128.
#include "cuda/numbers.cuh"
#include "cuda/hopper.cuh"

#define KEYS 128
#define HEAD_BLOCKS (HEAD / 64)
#define ROW_BYTES 128 // of 64 elements of a head, what the swizzle is for
#define QUERIES (64 * CONSUMERS)
#define QUERY_BYTES (QUERIES * ROW_BYTES * HEAD_BLOCKS)
#define TILE_BYTES (KEYS * ROW_BYTES * HEAD_BLOCKS)
#define OUT_PITCH 72 // elements of a row of 64 on its way out: no bank twice
#define MINUS_INFINITY (-__int_as_float(0x7f800000))

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

// The largest of a row lies in four neighbouring lanes.
__device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}
__device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Keys that a tile of queries sees: tiles `first` to `end`; those from `ragged` on, and those before `inner`, not in whole.
struct Range { int first, end, inner, ragged; };

__device__ __forceinline__ Range visible(int query, int queries, int keys, int window) {
    const int shift = keys - queries, last = min(query + QUERIES, queries) - 1;
    int low = 0, high = keys, all_low = 0, all_high = keys;
    if (CAUSAL) {
        high = min(high, last + shift + 1);
        all_high = min(all_high, query + shift + 1);
    }
    if (window > 0) {
        low = max(low, query + shift - window + 1);
        all_low = max(all_low, last + shift - window + 1);
        high = min(high, last + shift + window);
        all_high = min(all_high, query + shift + window);
    }
    high = max(high, low);
    return {low / KEYS, (high + KEYS - 1) / KEYS, (all_low + KEYS - 1) / KEYS, max(all_high, 0) / KEYS};
}

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1) attention_wgmma(
    const __grid_constant__ TensorMap map_q, const __grid_constant__ TensorMap map_k, const __grid_constant__ TensorMap map_v,
    Element *output, int heads, int kv_heads, int queries, int keys, int head_size, int window, float scale) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) unsigned long long barriers[1 + 4 * STAGES];
    const unsigned q_tile = shared_address(shared), k_tiles = q_tile + QUERY_BYTES, v_tiles = k_tiles + STAGES * TILE_BYTES;
    const unsigned q_full = shared_address(barriers), k_full = q_full + 8, k_empty = k_full + 8 * STAGES,
                   v_full = k_empty + 8 * STAGES, v_empty = v_full + 8 * STAGES;
    const int warpgroup = threadIdx.x / 128;
    // The last queries see most where causal: they begin first.
    const int query = (CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * QUERIES;
    const int head = blockIdx.y, kv = head / heads * kv_heads + head % heads / (heads / kv_heads);
    const Range range = visible(query, queries, keys, window);

    if (threadIdx.x == 0) {
        barrier_init(q_full, 1);
        for (int s = 0; s < STAGES; s++) {
            barrier_init(k_full + 8 * s, 1);
            barrier_init(v_full + 8 * s, 1);
            barrier_init(k_empty + 8 * s, 4 * CONSUMERS);
            barrier_init(v_empty + 8 * s, 4 * CONSUMERS);
        }
        barriers_ready();
    }
    __syncthreads();

    if (warpgroup == CONSUMERS) {
        fewer_registers<CONSUMERS == 2 ? 24 : 32>();
        if (threadIdx.x == 128 * CONSUMERS) {
            barrier_expect(q_full, QUERY_BYTES);
            for (int i = 0; i < HEAD_BLOCKS; i++) copy_box(q_tile + i * QUERIES * ROW_BYTES, &map_q, q_full, 64 * i, query, head);
            int stage = 0;
            unsigned parity = 0;
            for (int tile = range.first; tile < range.end; tile++) {
                const unsigned k_to = k_tiles + stage * TILE_BYTES, v_to = v_tiles + stage * TILE_BYTES;
                barrier_wait(k_empty + 8 * stage, parity ^ 1);
                barrier_expect(k_full + 8 * stage, TILE_BYTES);
                for (int i = 0; i < HEAD_BLOCKS; i++)
                    copy_box(k_to + i * KEYS * ROW_BYTES, &map_k, k_full + 8 * stage, 64 * i, tile * KEYS, kv);
                barrier_wait(v_empty + 8 * stage, parity ^ 1);
                barrier_expect(v_full + 8 * stage, TILE_BYTES);
                for (int i = 0; i < HEAD_BLOCKS; i++)
                    copy_box(v_to + i * KEYS * ROW_BYTES, &map_v, v_full + 8 * stage, 64 * i, tile * KEYS, kv);
                if (++stage == STAGES) stage = 0, parity ^= 1;
            }
        }
        return;
    }

    more_registers<CONSUMERS == 2 ? 240 : 160>();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const int row = query + warpgroup * 64 + warp * 16 + lane / 4; // and eight further down
    const float in_twos = scale * 1.4426950408889634f;
    auto release = [&](unsigned barrier) {
        if (lane == 0) barrier_arrive(barrier);
    };
    // Warpgroups take turns with the tensor cores.
    auto turn = [&]() {
        if (PINGPONG) named_barrier(1 + warpgroup, 256);
    };
    auto pass = [&]() {
        if (PINGPONG) named_arrive(1 + (warpgroup + 1) % CONSUMERS, 256);
    };
    if (PINGPONG && warpgroup == CONSUMERS - 1) named_arrive(1, 256);

    float scores[64], sums[SUMS], largest[2] = {MINUS_INFINITY, MINUS_INFINITY}, total[2] = {0.0f, 0.0f};
    unsigned weights[32];
#pragma unroll
    for (int i = 0; i < SUMS; i++) sums[i] = 0.0f;

    const unsigned long long q = matrix_descriptor(q_tile + warpgroup * 64 * ROW_BYTES, 0, 1024);
    auto multiply_keys = [&](int stage) {
        const unsigned long long k = matrix_descriptor(k_tiles + stage * TILE_BYTES, 0, 1024);
#pragma unroll
        for (int i = 0; i < HEAD / 16; i++) {
            const unsigned long long a = q + ((i / 4 * QUERIES * ROW_BYTES + i % 4 * 32) >> 4);
            const unsigned long long b = k + ((i / 4 * KEYS * ROW_BYTES + i % 4 * 32) >> 4);
            SCORE_PRODUCT(scores, a, b, i > 0);
        }
        products_commit();
    };
    auto multiply_values = [&](int stage) {
        const unsigned long long v = matrix_descriptor(v_tiles + stage * TILE_BYTES, KEYS * ROW_BYTES, 1024);
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) VALUE_PRODUCT(SUMS, sums, weights + 4 * i, v + (i * 16 * ROW_BYTES >> 4));
        products_commit();
    };
    // Scores become weights; `rescale` is what earlier sums are worth now.
    auto soften = [&](int tile, float (&rescale)[2]) {
        if (tile < range.inner || tile >= range.ragged) {
            const int shift = keys - queries;
#pragma unroll
            for (int i = 0; i < 64; i++) {
                const int key = tile * KEYS + i / 4 * 8 + lane % 4 * 2 + i % 2, at = row + (i / 2 % 2) * 8 + shift;
                bool seen = key < keys;
                if (CAUSAL) seen = seen && key <= at;
                if (window > 0) seen = seen && key > at - window && key < at + window;
                if (!seen) scores[i] = MINUS_INFINITY;
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float most = largest[h];
#pragma unroll
            for (int j = 0; j < 16; j++) most = fmaxf(most, fmaxf(scores[4 * j + 2 * h], scores[4 * j + 2 * h + 1]));
            most = quad_max(most);
            // A row that sees nothing yet has no largest score to subtract.
            const float base = most == MINUS_INFINITY ? 0.0f : most * in_twos;
            rescale[h] = power_of_two(largest[h] * in_twos - base);
            largest[h] = most;
            float sum = 0.0f;
#pragma unroll
            for (int j = 0; j < 16; j++) {
                float& x = scores[4 * j + 2 * h];
                float& y = scores[4 * j + 2 * h + 1];
                x = power_of_two(x * in_twos - base);
                y = power_of_two(y * in_twos - base);
                sum += x + y;
            }
            total[h] = total[h] * rescale[h] + sum;
        }
    };
    auto narrow_weights = [&]() {
#pragma unroll
        for (int i = 0; i < 32; i++) weights[i] = two_from_floats(scores[2 * i], scores[2 * i + 1], Element());
    };

    if (range.first < range.end) {
        float rescale[2];
        int stage = 0;
        unsigned parity = 0;
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
        soften(range.first, rescale);
        narrow_weights();
        for (int tile = range.first + 1; tile < range.end; tile++) {
            const int v_stage = stage;
            const unsigned v_parity = parity;
            if (++stage == STAGES) stage = 0, parity ^= 1;
            barrier_wait(k_full + 8 * stage, parity);
            turn();
            pin(scores);
            pin(sums);
            products_begin();
            multiply_keys(stage);
            barrier_wait(v_full + 8 * v_stage, v_parity);
            multiply_values(v_stage);
            pass();
            products_wait<1>();
            pin(scores);
            release(k_empty + 8 * stage);
            soften(tile, rescale);
            products_wait<0>();
            pin(sums);
            release(v_empty + 8 * v_stage);
            narrow_weights();
#pragma unroll
            for (int i = 0; i < SUMS; i++) sums[i] *= rescale[i / 2 % 2];
        }
        barrier_wait(v_full + 8 * stage, parity);
        pin(sums);
        products_begin();
        multiply_values(stage);
        products_wait<0>();
        pin(sums);
    }

    // A row without weight is one that saw nothing: zeros.
    float share[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float all = quad_sum(total[h]);
        share[h] = all == 0.0f ? 0.0f : 1.0f / all;
    }
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
