// The type of sums of products: f32, or i32 for factors of bytes (FACTOR_S8).
#pragma once

#if FACTOR_S8
typedef int Sum;
typedef int2 Sum2;
typedef int4 Sum4;
#define SUM_REGISTER "r"
#define SUM_TYPE "s32"
#else
typedef float Sum;
typedef float2 Sum2;
typedef float4 Sum4;
#define SUM_REGISTER "f"
#define SUM_TYPE "f32"
#endif

__device__ __forceinline__ Sum2 two_sums(Sum x, Sum y) {
    Sum2 two;
    two.x = x;
    two.y = y;
    return two;
}
