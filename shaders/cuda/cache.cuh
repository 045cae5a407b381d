// Rows of keys and values in shared memory, as operands of mma: in f16 or bf16 like the queries, or in signed bytes
// with a scale for each row (CACHE_S8). Four neighbouring elements of a row become two words of two.
#pragma once

#include "cuda/numbers.cuh"

#if CACHE_S8
typedef signed char Stored;
#else
typedef Factor Stored;
#endif

// Bytes from row to row, so that the eight rows of a fragment of keys, and two by two those of values, hit no bank
// twice.
#define KEY_PITCH (HEAD * (int)sizeof(Stored) + (sizeof(Stored) == 1 ? 16 : 32))
#define VALUE_PITCH (HEAD * (int)sizeof(Stored) + 16)

#if CACHE_S8
// Four signed bytes: each becomes the low byte of 2^23 in f32, which is then taken away.
__device__ __forceinline__ void four_floats(float (&x)[4], unsigned bytes) {
    const unsigned shifted = bytes ^ 0x80808080u;
#pragma unroll
    for (int i = 0; i < 4; i++)
        x[i] = __uint_as_float(__byte_perm(shifted, 0x4b000000u, 0x7540 + i)) - 8388736.0f;
}
#endif

// Four elements of a key, without its scale.
__device__ __forceinline__ uint2 key_words(const unsigned char *row, int at) {
#if CACHE_S8
    float x[4];
    four_floats(x, *reinterpret_cast<const unsigned *>(row + at));
    return make_uint2(two_from_floats(x[0], x[1], Factor()), two_from_floats(x[2], x[3], Factor()));
#else
    return *reinterpret_cast<const uint2 *>(row + at * 2);
#endif
}

// Four columns of two values, one below the other: the words of four fragments.
__device__ __forceinline__ uint4 value_words(const unsigned char *first, const unsigned char *second, float scale_of_first,
                                             float scale_of_second, int at) {
#if CACHE_S8
    float x[4], y[4];
    four_floats(x, *reinterpret_cast<const unsigned *>(first + at));
    four_floats(y, *reinterpret_cast<const unsigned *>(second + at));
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; i++) words[i] = two_from_floats(x[i] * scale_of_first, y[i] * scale_of_second, Factor());
    return make_uint4(words[0], words[1], words[2], words[3]);
#else
    const uint2 x = *reinterpret_cast<const uint2 *>(first + at * 2), y = *reinterpret_cast<const uint2 *>(second + at * 2);
    return make_uint4(__byte_perm(x.x, y.x, 0x5410), __byte_perm(x.x, y.x, 0x7632), __byte_perm(x.y, y.y, 0x5410),
                      __byte_perm(x.y, y.y, 0x7632));
#endif
}

__device__ __forceinline__ float stored_float(signed char x) { return x; }
__device__ __forceinline__ float stored_float(F16 x) { return to_float(x); }
__device__ __forceinline__ float stored_float(Bf16 x) { return to_float(x); }

// One element of a value.
__device__ __forceinline__ float value_at(const unsigned char *row, float scale, int at) {
    return scale * stored_float(reinterpret_cast<const Stored *>(row)[at]);
}
