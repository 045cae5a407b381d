// Attention of few queries over many keys: softmax(scale q k^T) v over a part of the keys (Dao et al.,
// "Flash-Decoding", 2023); attention_join.cu joins the parts. A block takes 16 rows of q of the heads that share a kv
// head. Each of its four warps takes every fourth 16 keys, copies them asynchronously into stages of its own, and keeps
// its own softmax, so that warps meet only at the end.
// HEAD: the largest head size. LENGTHS: sequences have lengths. PAGE: tokens of a page, 0 without pages. CACHE_S8: keys
// and values are signed bytes with scales. SINGLE: there is one query.
#define MMA 1
#define TRANS_A 0
#define TRANS_B 1
#define WARPS 4
#define THREADS (32 * WARPS)
#define QUERIES 16
#define KEYS 16
#define NEGATIVE 0
#include "cuda/factors.cuh"
#include "cuda/cache.cuh"
#include "cuda/copy.cuh"
#include "cuda/softmax.cuh"

#define KEY_BYTES (KEYS * KEY_PITCH)
#define VALUE_BYTES (KEYS * VALUE_PITCH)
#define SCALE_BYTES (CACHE_S8 ? 2 * KEYS * 4 : 0)
#define STAGE_BYTES (KEY_BYTES + VALUE_BYTES + SCALE_BYTES)
#define QUERY_PITCH (HEAD * 2 + 32)
#define SUM_PITCH (HEAD + 4)


// The keys that a query sees, of `keys`: from x to y.
__device__ __forceinline__ int2 seen_by(int query, int queries, int keys, int window) {
    const int at = keys - queries + query;
    int2 range = make_int2(0, keys);
    if (CAUSAL) range.y = min(range.y, at + 1);
    if (window > 0) {
        range.x = max(range.x, at - window + 1);
        range.y = min(range.y, at + window);
    }
    range.y = max(range.y, range.x);
    return range;
}

extern "C" __global__ void __launch_bounds__(THREADS)
attention_decode(const Factor *q, const unsigned char *k, const unsigned char *v, const float *scales, const unsigned *table,
                 const unsigned *lengths, Factor *output, float *partials, float2 *statistics, int kv_heads, int group,
                 int queries, int keys, int head_size, int window, int pages, int pages_each, int kv_rows, int row_tiles,
                 int parts, float scale) {
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ float2 of_warps[WARPS][QUERIES];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, c = lane % 4;
    const int pair = blockIdx.y, sequence = pair / kv_heads;
    const int first_row = blockIdx.x % row_tiles * QUERIES, part = blockIdx.x / row_tiles;
    const int rows = min(group * queries - first_row, QUERIES);
    const size_t row_of_pair = (size_t)pair * group * queries + first_row;
#if LENGTHS
    const int length = (int)min(lengths[sequence], (unsigned)keys);
#else
    const int length = keys;
#endif

    // The queries of the rows, and the keys that any of them sees, of which this block takes a part.
    int first_query = first_row % queries, last_query = first_query + rows - 1;
    if (last_query >= queries) {
        first_query = 0;
        last_query = queries - 1;
    }
    const int2 of_first = seen_by(first_query, queries, length, window), of_last = seen_by(last_query, queries, length, window);
    const int all = max(of_last.y - of_first.x, 0);
    const int share = ((all + parts - 1) / parts + WARPS * KEYS - 1) / (WARPS * KEYS) * (WARPS * KEYS);
    const int begin = of_first.x + part * share, end = min(begin + share, of_last.y);

    // Queries, zeros beyond the last row and element.
    constexpr int QUERY_CHUNKS = HEAD / 8;
    const unsigned char *const q_tile = shared;
    for (int i = threadIdx.x; i < QUERIES * QUERY_CHUNKS; i += THREADS) {
        const int row = i / QUERY_CHUNKS, col = i % QUERY_CHUNKS * 8;
        uint4 eight = make_uint4(0, 0, 0, 0);
        if (row < rows && col < head_size) eight = *reinterpret_cast<const uint4 *>(q + (row_of_pair + row) * head_size + col);
        *reinterpret_cast<uint4 *>(shared + row * QUERY_PITCH + col * 2) = eight;
    }
    __syncthreads();
    const auto query_block = [&](int i) {
        const uint2 upper = *reinterpret_cast<const uint2 *>(q_tile + g * QUERY_PITCH + (i * 16 + c * 4) * 2);
        const uint2 lower = *reinterpret_cast<const uint2 *>(q_tile + (g + 8) * QUERY_PITCH + (i * 16 + c * 4) * 2);
        return Block{{upper.x, lower.x, upper.y, lower.y}};
    };
#if HEAD <= 128
    Block held[HEAD / 16];
#pragma unroll
    for (int i = 0; i < HEAD / 16; i++) held[i] = query_block(i);
#endif

    // The row in the cache of a key of a tile, for each lane; -1 if it is not read.
    const auto find = [&](int tile) {
        const int key = begin + tile * KEYS + lane % KEYS;
        if (key >= end) return -1;
#if PAGE
        const unsigned page = table[(size_t)sequence * pages_each + key / PAGE];
        return page < (unsigned)pages ? ((int)page * kv_heads + pair % kv_heads) * PAGE + key % PAGE : -1;
#else
        return pair * keys + key;
#endif
    };
    unsigned char *const stages = shared + QUERIES * QUERY_PITCH + warp * STAGES * STAGE_BYTES;
    constexpr int CHUNKS = HEAD * (int)sizeof(Stored) / 16;
    const auto fetch = [&](int stage, int found) {
        const unsigned to = (unsigned)__cvta_generic_to_shared(stages + stage * STAGE_BYTES);
#pragma unroll
        for (int i = 0; i < KEYS * CHUNKS / 32; i++) {
            const int at = i * 32 + lane, row = at / CHUNKS, byte = at % CHUNKS * 16;
            const int from = __shfl_sync(~0u, found, row);
            const bool there = from >= 0 && byte < head_size * (int)sizeof(Stored);
            const size_t offset = there ? (size_t)from * head_size * sizeof(Stored) + byte : 0;
            copy_async<16>(to + row * KEY_PITCH + byte, k + offset, there);
            copy_async<16>(to + KEY_BYTES + row * VALUE_PITCH + byte, v + offset, there);
        }
#if CACHE_S8
        // The scales of keys, then of values.
        const size_t from = found < 0 ? 0 : (size_t)found + (lane < KEYS ? 0 : kv_rows);
        copy_async<4>(to + KEY_BYTES + VALUE_BYTES + lane * 4, scales + from, found >= 0);
#endif
    };

    const int tiles = end > begin ? (end - begin + KEYS - 1) / KEYS : 0;
    float sums[HEAD / 32][2][8] = {};
    float largest[2] = {MINUS_INFINITY, MINUS_INFINITY}, total[2] = {0.0f, 0.0f};
    const float in_twos = scale * 1.4426950408889634f;
    // Whether each key of the tiles in flight is there: a bit for each, the newest last.
    unsigned long long absent = 0;
    int found = find(warp);
    const auto begin_tile = [&](int tile, int stage) {
        absent = absent << KEYS | (__ballot_sync(~0u, found < 0) & 0xffffu);
        if (tile < tiles) fetch(stage, found);
        copy_commit();
        found = find(tile + WARPS);
    };
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) begin_tile(warp + s * WARPS, s);
    int stage = 0;
#pragma unroll 1
    for (int tile = warp; tile < tiles; tile += WARPS) {
        copy_wait<STAGES - 2>();
        __syncwarp();
        begin_tile(tile + (STAGES - 1) * WARPS, stage == 0 ? STAGES - 1 : stage - 1);
        const unsigned hidden = (unsigned)(absent >> (STAGES - 1) * KEYS) & 0xffffu;
        const unsigned char *const key_tile = stages + stage * STAGE_BYTES, *const value_tile = key_tile + KEY_BYTES;
#if CACHE_S8
        const float *const key_scales = reinterpret_cast<const float *>(value_tile + VALUE_BYTES);
        const float *const value_scales = key_scales + KEYS;
#endif
        stage = stage == STAGES - 1 ? 0 : stage + 1;

        // A thread's scores: of two rows eight apart, two neighbouring keys of each eight.
        Sums scores = {};
#pragma unroll
        for (int i = 0; i < HEAD / 16; i++) {
            Block b;
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const uint2 words = key_words(key_tile + (j * 8 + g) * KEY_PITCH, i * 16 + c * 4);
                b.x[2 * j] = words.x;
                b.x[2 * j + 1] = words.y;
            }
#if HEAD <= 128
            multiply(scores, held[i], b);
#else
            multiply(scores, query_block(i), b);
#endif
        }
        const int first_key = begin + tile * KEYS;
        bool whole = true;
#if !SINGLE
        const int2 inner = make_int2(of_last.x, of_first.y);
        whole = first_key >= inner.x && min(first_key + KEYS, end) <= inner.y;
#endif
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const int key = e / 4 * 8 + c * 2 + e % 2;
            float score = scores.x[e] * in_twos;
#if CACHE_S8
            score *= key_scales[key];
#endif
            bool out = hidden >> key & 1;
#if !SINGLE
            if (!whole) {
                const int query = (first_row + g + e / 2 % 2 * 8) % queries;
                out = out || !sees(length - queries + query, first_key + key, length, window);
            }
#endif
            scores.x[e] = out ? MINUS_INFINITY : score;
        }

        float fade[2], center[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float here = quad_max(fmaxf(fmaxf(scores.x[2 * r], scores.x[2 * r + 1]), fmaxf(scores.x[2 * r + 4], scores.x[2 * r + 5])));
            const float now = fmaxf(largest[r], here);
            // While a row has seen no key, any finite center will do.
            center[r] = now == MINUS_INFINITY ? 0.0f : now;
            fade[r] = power_of_two(largest[r] - center[r]);
            largest[r] = now;
            total[r] *= fade[r];
        }
        if (__any_sync(~0u, fade[0] != 1.0f || fade[1] != 1.0f)) {
#pragma unroll
            for (int i = 0; i < HEAD / 16; i++)
#pragma unroll
                for (int e = 0; e < 8; e++) sums[i / 2][i % 2][e] *= fade[e / 2 % 2];
        }
        float weights[8];
#pragma unroll
        for (int e = 0; e < 8; e++) {
            weights[e] = power_of_two(scores.x[e] - center[e / 2 % 2]);
            total[e / 2 % 2] += weights[e];
        }

        float one[4] = {1.0f, 1.0f, 1.0f, 1.0f};
#if CACHE_S8
#pragma unroll
        for (int i = 0; i < 4; i++) one[i] = value_scales[i / 2 * 8 + c * 2 + i % 2];
#endif
        if (whole) {
            Block a;
#pragma unroll
            for (int i = 0; i < 4; i++) a.x[i] = two_from_floats(weights[2 * i], weights[2 * i + 1], Factor());
            const unsigned char *const first_value = value_tile + c * 2 * VALUE_PITCH;
#pragma unroll
            for (int i = 0; i < HEAD / 32; i++) {
                // Column n of fragment f is element 4 n + f of 32.
                const uint4 upper = value_words(first_value, first_value + VALUE_PITCH, one[0], one[1], i * 32 + g * 4);
                const uint4 lower = value_words(first_value + 8 * VALUE_PITCH, first_value + 9 * VALUE_PITCH, one[2], one[3], i * 32 + g * 4);
                const Block b[2] = {{{upper.x, lower.x, upper.y, lower.y}}, {{upper.z, lower.z, upper.w, lower.w}}};
#pragma unroll
                for (int f = 0; f < 2; f++) multiply(*reinterpret_cast<Sums *>(sums[i][f]), a, b[f]);
            }
        } else {
            // Some rows do not see some keys, whose values may be infinite or NaN, and 0 times these is NaN: each value
            // is added only where it is seen.
#pragma unroll 1
            for (int j = 0; j < KEYS; j++) {
                float weight[2];
                bool seen[2];
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const float even = j < 8 ? weights[2 * r] : weights[2 * r + 4], odd = j < 8 ? weights[2 * r + 1] : weights[2 * r + 5];
                    const float score = __shfl_sync(~0u, j % 2 ? odd : even, j % 8 / 2, 4);
                    const int query = (first_row + g + r * 8) % queries;
                    weight[r] = score;
                    seen[r] = !(hidden >> j & 1) && sees(length - queries + query, first_key + j, length, window);
                }
#if CACHE_S8
                const float value_scale = value_scales[j];
#else
                const float value_scale = 1.0f;
#endif
#pragma unroll
                for (int i = 0; i < HEAD / 32; i++)
#pragma unroll
                    for (int x = 0; x < 8; x++) {
                        const float value = value_at(value_tile + j * VALUE_PITCH, value_scale, i * 32 + c * 8 + x);
#pragma unroll
                        for (int r = 0; r < 2; r++)
                            if (seen[r]) sums[i][x % 4 / 2][x % 2 * 4 + r * 2 + x / 4] += weight[r] * value;
                    }
            }
        }
    }
    copy_wait<0>();

    // Joins the warps.
#pragma unroll
    for (int r = 0; r < 2; r++) {
        total[r] = quad_sum(total[r]);
        if (c == 0) of_warps[warp][g + r * 8] = make_float2(largest[r], total[r]);
    }
    __syncthreads();
    float *const joined = reinterpret_cast<float *>(shared);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = g + r * 8;
        float top = MINUS_INFINITY;
#pragma unroll
        for (int w = 0; w < WARPS; w++) top = fmaxf(top, of_warps[w][row].x);
        const float weight = power_of_two(largest[r] - (top == MINUS_INFINITY ? 0.0f : top));
#pragma unroll
        for (int i = 0; i < HEAD / 32; i++)
#pragma unroll
            for (int x = 0; x < 8; x++)
                joined[(warp * QUERIES + row) * SUM_PITCH + i * 32 + c * 8 + x] = weight * sums[i][x % 4 / 2][x % 2 * 4 + r * 2 + x / 4];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows * (HEAD / 4); i += THREADS) {
        const int row = i / (HEAD / 4), col = i % (HEAD / 4) * 4;
        if (col >= head_size) continue;
        float top = MINUS_INFINITY, whole_total = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; w++) top = fmaxf(top, of_warps[w][row].x);
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            const float2 of = of_warps[w][row];
            whole_total += of.y * power_of_two(of.x - (top == MINUS_INFINITY ? 0.0f : top));
            const float4 x = *reinterpret_cast<const float4 *>(joined + (w * QUERIES + row) * SUM_PITCH + col);
            sum.x += x.x;
            sum.y += x.y;
            sum.z += x.z;
            sum.w += x.w;
        }
        const size_t at = row_of_pair + row;
        if (parts > 1) {
            *reinterpret_cast<float4 *>(partials + (at * parts + part) * head_size + col) = sum;
            if (col == 0) statistics[at * parts + part] = make_float2(top, whole_total);
        } else {
            const float factor = whole_total == 0.0f ? 0.0f : 1.0f / whole_total;
            *reinterpret_cast<uint2 *>(output + at * head_size + col) =
                make_uint2(two_from_floats(sum.x * factor, sum.y * factor, Factor()), two_from_floats(sum.z * factor, sum.w * factor, Factor()));
        }
    }
}
