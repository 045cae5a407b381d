// Handles infinite and NaN values that only some rows see: their product with a weight of 0 would spoil the other rows.
// Rows, keys and weights are laid out as in softmax.cuh. Needs HEAD, the needs of that file, and SHARERS, the threads
// whose rows share a tile of values.
#pragma once

#include "cuda/numbers.cuh"
#include "cuda/softmax.cuh"

// Adds 0 times the two numbers of a word, which is NaN if one is not finite.
__device__ __forceinline__ void look(unsigned &found, unsigned two, F16) {
    asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(found) : "r"(two), "r"(0));
}

__device__ __forceinline__ void look(unsigned &found, unsigned two, Bf16) {
    asm("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(found) : "r"(two), "r"(0));
}

template <typename Number> __device__ __forceinline__ bool is_finite(Number x) {
    return fabsf(to_float(x)) < __int_as_float(0x7f800000);
}

// Whether `thread` of `threads` finds an infinity or NaN in its share of a tile of values. `piece` returns the address
// of eight numbers.
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

// Adds values that are not finite to the rows that see them, and zeroes them for the product. `weights` holds two in a
// word. `pair` returns the address of a thread's two numbers of a key in every eight columns; `wait` synchronises all
// threads that share the tile.
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
        // The weights rotate by eight keys in each round; after all keys they are back in place.
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
