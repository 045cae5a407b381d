// 16-bit numbers as bits, and conversions without a header.
#pragma once

struct F16 {
    unsigned short bits;
};

struct Bf16 {
    unsigned short bits;
};

__device__ __forceinline__ float to_float(float x) {
    return x;
}

__device__ __forceinline__ float to_float(F16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}

__device__ __forceinline__ float to_float(Bf16 x) {
    return __uint_as_float((unsigned)x.bits << 16);
}

// Rounds to nearest, ties to even.
__device__ __forceinline__ void from_float(float x, float &y) {
    y = x;
}

__device__ __forceinline__ void from_float(float x, F16 &y) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
}

#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ void from_float(float x, Bf16 &y) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
}

// Packs two in a word, `low` in the low half.
__device__ __forceinline__ unsigned two_from_floats(float low, float high, F16) {
    unsigned bits;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}

__device__ __forceinline__ unsigned two_from_floats(float low, float high, Bf16) {
    unsigned bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}

// Rounds to 11 bits, to nearest, ties away from 0.
__device__ __forceinline__ float round_tf32(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}
#endif
