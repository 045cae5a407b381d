// Numbers of 16 bits as plain bits, and conversions that no header is needed for.
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

// Rounds to the nearest, ties to even.
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
#endif
