// Shared by attention on tensor cores: the keys that a tile of queries sees, and the online softmax (M. Milakov and N.
// Gimelshein 2018). A thread has scores of two rows, eight apart, and two neighbouring keys of every eight; a row is
// spread over four neighbouring lanes. Needs QUERIES and KEYS, the sides of a tile, CAUSAL, and NEGATIVE if the factor
// of the scores is negative; `scale` is its magnitude.
#pragma once

#define MINUS_INFINITY (-__int_as_float(0x7f800000))

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

// Key tiles that some query of a tile sees: `first` to `end`. Those before `inner` and from `ragged` on are partly
// masked.
struct Range {
    int first, end, inner, ragged;
};

// For the queries from `query` on. The last query aligns with the last key; a `window` of 0 means none.
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

// Whether a row aligned with key `at` sees key `key`.
__device__ __forceinline__ bool sees(int at, int key, int keys, int window) {
    bool seen = key < keys;
    if (CAUSAL) seen = seen && key <= at;
    if (window > 0) seen = seen && key > at - window && key < at + window;
    return seen;
}

struct Softmax {
    // For the two rows.
    float largest[2] = {MINUS_INFINITY, MINUS_INFINITY};
    float total[2] = {0.0f, 0.0f};

    // Turns a thread's scores of KEYS keys from `key` on into weights; its first row aligns with key `at`. `rescale` is
    // the factor for earlier sums. With `whole` all keys are visible.
    __device__ __forceinline__ void weigh(float (&scores)[KEYS / 2], float scale, bool whole, int key, int keys, int at, int window,
                                          float (&rescale)[2]) {
#if NEGATIVE
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) scores[i] = -scores[i];
#endif
        if (!whole) {
#pragma unroll
            for (int i = 0; i < KEYS / 2; i++) {
                const int j = key + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
                if (!sees(at + i / 2 % 2 * 8, j, keys, window)) scores[i] = MINUS_INFINITY;
            }
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float most = largest[half];
#pragma unroll
            for (int i = 2 * half; i < KEYS / 2; i += 4) most = fmaxf(most, fmaxf(scores[i], scores[i + 1]));
            most = quad_max(most);
            // A row without visible keys has no maximum to subtract.
            const float base = most == MINUS_INFINITY ? 0.0f : most * scale;
            rescale[half] = power_of_two(largest[half] * scale - base);
            largest[half] = most;
            float sum = 0.0f;
#pragma unroll
            for (int i = 2 * half; i < KEYS / 2; i += 4) {
                scores[i] = power_of_two(scores[i] * scale - base);
                scores[i + 1] = power_of_two(scores[i + 1] * scale - base);
                sum += scores[i] + scores[i + 1];
            }
            total[half] = total[half] * rescale[half] + sum;
        }
    }

    // The final factor of weighted sums; 0 for a row without visible keys.
    __device__ __forceinline__ float share(int half) const {
        const float all = quad_sum(total[half]);
        return all == 0.0f ? 0.0f : 1.0f / all;
    }
};
