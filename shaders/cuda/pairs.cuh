// A function of two elements, and a vec4 of elements. Requires: ELEMENT, a type; FUNCTION: 0 sum, 1 product, 2 min, 3
// max, 4 difference, 5 quotient.
#pragma once

typedef ELEMENT T;

struct alignas(16) Quad {
    T x[4];
};

__device__ __forceinline__ T combine(T a, T b) {
    if (FUNCTION == 0) return a + b;
    if (FUNCTION == 1) return a * b;
    if (FUNCTION == 4) return a - b;
    if (FUNCTION == 5) {
        if (T(0.5f) == T(0)) {
            // Integers: x / 0 is x, and overflow wraps.
            if (b == T(0)) return a;
            if (T(-1) < T(0) && b == T(-1)) return T(0u - unsigned(a));
        }
        return a / b;
    }
    // The first NaN wins, and the first of two equal elements.
    if (a != a) return a;
    if (b != b) return b;
    return (FUNCTION == 2 ? a <= b : a >= b) ? a : b;
}
