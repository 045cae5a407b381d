// activate(x), as in shaders/activation: ACTIVATION is 0 none, 1 relu, 2 sigmoid, 3 tanh, 4 gelu. Divisions err by up
// to 2 units in the last place; their divisors are between 1 and 5e8.
#pragma once

__device__ __forceinline__ float activate(float x) {
#if ACTIVATION == 1
    // NaN compares false and stays; -0 becomes 0.
    return x <= 0.0f ? 0.0f : x;
#elif ACTIVATION == 2
    // exp(-|x|) cannot overflow.
    const float e = expf(-fabsf(x));
    return __fdividef(x >= 0.0f ? 1.0f : e, 1.0f + e);
#elif ACTIVATION == 3
    // Near 0 the odd minimax polynomial x + x^3 Q(x^2), elsewhere 1 - 2 / (exp(2|x|) + 1).
    const float s = x * x;
    float q = -0.006096714f;
    q = q * s + 0.02099718f;
    q = q * s - 0.053850907f;
    q = q * s + 0.13332769f;
    q = q * s - 0.33333328f;
    const float near = x + x * s * q;
    // Above 10 the result rounds to 1.
    const float far = 1.0f - __fdividef(2.0f, expf(2.0f * fminf(fabsf(x), 10.0f)) + 1.0f);
    const float y = fabsf(x) < 0.625f ? near : x < 0.0f ? -far : far;
    return x != x ? x : y;
#elif ACTIVATION == 4
    // max(x, 0) - a (1 - Phi(a)) with a = |x| does not cancel. Above 16 the tail is 0.
    const float a = fminf(fabsf(x), 16.0f);
    const float t = __fdividef(1.0f, 1.0f + 0.25f * a);
    float p = 0.019782422f;
    p = p * t - 0.08087913f;
    p = p * t + 0.09560041f;
    p = p * t - 0.03172082f;
    p = p * t + 0.063701026f;
    p = p * t + 0.058974493f;
    p = p * t + 0.08160324f;
    p = p * t + 0.09346634f;
    p = p * t + 0.09973643f;
    p = p * t + 0.09973557f;
    const float tail = a * (t * (p * expf(-0.5f * a * a)));
    const float y = x < 0.0f ? -tail : x - tail;
    return x != x ? x : y;
#else
    return x;
#endif
}
