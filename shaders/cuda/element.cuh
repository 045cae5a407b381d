// The type of a product's result: f16 (RESULT_F16), bf16 (RESULT_BF16), i32 (RESULT_I32) or f32, and four of them.
#pragma once

#include "cuda/numbers.cuh"

#if RESULT_I32
typedef int Element;
#elif RESULT_F16
typedef F16 Element;
#elif RESULT_BF16
typedef Bf16 Element;
#else
typedef float Element;
#endif

struct __align__(4 * sizeof(Element)) Four {
    Element x[4];
};
