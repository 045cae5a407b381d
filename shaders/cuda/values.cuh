// Values that some rows see and others do not: where one is infinite or NaN, its product with a weight of 0 would spoil the rows
// that do not see it. Rows, keys and weights lie as in softmax.cuh. Needs HEAD and what that file needs, and SHARERS, the
// threads whose rows share a tile of values.
#pragma once

#include "cuda/numbers.cuh"
#include "cuda/softmax.cuh"

// Adds 0 times the two numbers of a word, which is NaN where they are not finite.
__device__ __forceinline__ void look(unsigned &found, unsigned two, F16) {
    asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(found) : "r"(two), "r"(0));
}

__device__ __forceinline__ void look(unsigned &found, unsigned two, Bf16) {
    asm("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(found) : "r"(two), "r"(0));
}

template <typename Number> __device__ __forceinline__ bool is_finite(Number x) {
    return fabsf(to_float(x)) < __int_as_float(0x7f800000);
}

// Whether there is an infinity or NaN in the share of a tile of values that `thread` of `threads` looks at. `piece` is where
// eight numbers of the tile lie.
template <typename Number, typename Piece>
__device__ __forceinline__ bool not_finite(int thread, int threads, const Piece &piece) {
    unsigned found = 0;
#pragma unroll 2
    for (int i = thread; i < KEYS * HEAD / 8; i += threads) {
        const uint4 x = *(const uint4 *)piece(i);
        look(found, x.x, Number());
        look(found, x.y, Number());
        look(found, x.z, Number());
        look(found, x.w, Number());
    }
    return (found & 0x7fff7fff) != 0;
}

// What is not finite in a tile of values is added here to the rows that see it, and becomes 0 for the product. `weights` are two
// in a word. `pair` is where the two numbers of a key lie that a thread has of each eight columns; `wait` is for all who share
// the tile.
template <typename Number, typename Piece, typename Pair, typename Wait>
__device__ __forceinline__ void take_out(float (&sums)[HEAD / 2], unsigned (&weights)[KEYS / 4], int key, int keys, int at, int window,
                                         const Piece &piece, const Pair &pair, const Wait &wait) {
#pragma unroll 1
    for (int j = 0; j < KEYS; j++) {
        float weight[2];
        bool seen[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const unsigned two = __shfl_sync(~0u, weights[half], j % 8 / 2, 4);
            weight[half] = to_float(Number{(unsigned short)(two >> j % 2 * 16)});
            seen[half] = sees(at + half * 8, key + j, keys, window);
        }
#pragma unroll
        for (int i = 0; i < HEAD / 2; i++) {
            const Number value = ((const Number *)pair(j, i / 4))[i % 2];
            if (seen[i / 2 % 2] && !is_finite(value)) sums[i] += weight[i / 2 % 2] * to_float(value);
        }
        // A loop finds the weights of the next eight keys where these were; after all keys they lie as before.
        if (j % 8 == 7) {
            const unsigned first[2] = {weights[0], weights[1]};
#pragma unroll
            for (int i = 0; i < KEYS / 4; i++) weights[i] = i < KEYS / 4 - 2 ? weights[i + 2] : first[i % 2];
        }
    }
    wait();
#pragma unroll 1
    for (int i = threadIdx.x; i < KEYS * HEAD; i += SHARERS) {
        Number *const value = (Number *)piece(i / 8) + i % 8;
        if (!is_finite(*value)) value->bits = 0;
    }
    wait();
}
