// The built-in functions of Transform, one chosen by a flag. The importer declares A, B, C and R, the types of operands
// and of the output, `param` and `is_nan`.
#if CONVERT
fn apply(i: u32, a: A) -> R {
#if FROM_FLOAT && !OUT_F32 && !OUT_F16
    // The least number and the largest that are floats, and the largest.
#if OUT_I32
    let ends = vec2<f32>(-2147483648.0, 2147483520.0);
    let most = 2147483647;
#endif
#if OUT_U32
    let ends = vec2<f32>(0.0, 4294967040.0);
    let most = 4294967295u;
#endif
#if OUT_U8
    let ends = vec2<f32>(0.0, 255.0);
    let most = 255u;
#endif
#if OUT_I8
    let ends = vec2<f32>(-128.0, 127.0);
    let most = 127;
#endif
    if is_nan(a) { return R(0); }
    return select(R(clamp(a, ends.x, ends.y)), most, a > ends.y);
#else
    return R(a);
#endif
}
#endif
#if WHERE
#if FROM_FLOAT
// By bits, since devices may take small numbers for 0, and compare NaN as they like.
fn apply(i: u32, a: A, b: B, c: C) -> R { return select(c, b, (bitcast<u32>(a) & 0x7fffffffu) != 0u); }
#else
fn apply(i: u32, a: A, b: B, c: C) -> R { return select(c, b, a != A(0)); }
#endif
#endif
#if COMPARE || MIN || MAX
#if FROM_FLOAT
// A whole number in the order of floats: -0 and 0 have the same. Compared so, since devices may take small numbers for
// 0.
fn place(x: f32) -> i32 {
    let bits = bitcast<i32>(x);
    return select(bits, -(bits & 0x7fffffff), bits < 0);
}
fn unordered(a: f32, b: f32) -> bool { return is_nan(a) || is_nan(b); }
#else
fn place(x: A) -> A { return x; }
fn unordered(a: A, b: A) -> bool { return false; }
#endif
#endif
#if COMPARE
// Outcomes that give 1: less 1, equal 2, greater 4, with a NaN 8.
const OUTCOMES: u32 = 1u;
fn apply(i: u32, a: A, b: B) -> R {
    let ordered = select(select(4u, 2u, place(a) == place(b)), 1u, place(a) < place(b));
    return select(R(0), R(1), (select(ordered, 8u, unordered(a, b)) & OUTCOMES) != 0u);
}
#endif
#if MIN
fn apply(i: u32, a: A, b: B) -> R {
    let least = select(b, a, place(a) < place(b));
#if FROM_FLOAT
    if unordered(a, b) { return select(b, a, is_nan(a)); }
#endif
    return least;
}
#endif
#if MAX
fn apply(i: u32, a: A, b: B) -> R {
    let largest = select(b, a, place(a) > place(b));
#if FROM_FLOAT
    if unordered(a, b) { return select(b, a, is_nan(a)); }
#endif
    return largest;
}
#endif
#if ADD
fn apply(i: u32, a: A, b: B) -> R { return a + b; }
#endif
#if SUB
fn apply(i: u32, a: A, b: B) -> R { return a - b; }
#endif
#if MUL
fn apply(i: u32, a: A, b: B) -> R { return a * b; }
#endif
#if DIV
#if FROM_FLOAT
fn apply(i: u32, a: A, b: B) -> R { return a / b; }
#else
// WGSL's rule, stated here because the kernels run without runtime checks: a / 0 = a, and so is the quotient that
// wraps.
fn apply(i: u32, a: A, b: B) -> R {
    let wraps = ~A(0) < A(0) && b == ~A(0) && a == A(0) - a;
    return a / select(b, B(1), b == B(0) || wraps);
}
#endif
#endif
#if AFFINE
fn apply(i: u32, a: A) -> R { return param(0u) * f32(a) + param(1u); }
#endif
#if SILU || SWIGLU || GELU_TANH || SILU_BACKWARD || SWIGLU_BACKWARD || GELU_TANH_BACKWARD
// 1 / (1 + e^-x) and 1 / (1 + e^x), with e^-|x| so that nothing overflows; from 128 on that is 0 in f32.
fn sigmoids(x: f32) -> vec2<f32> {
    let e = exp(-min(abs(x), 128.0));
    let shares = vec2<f32>(1.0, e) / (1.0 + e);
    return select(shares, shares.yx, x < 0.0);
}
#endif
#if SILU || SWIGLU
// The bound keeps minus infinity times 0 out of it.
fn silu(a: f32) -> f32 { return select(max(a, -128.0) * sigmoids(a).x, a, is_nan(a)); }
#endif
#if SILU
fn apply(i: u32, a: A) -> R { return silu(a); }
#endif
#if SWIGLU
fn apply(i: u32, a: A, b: B) -> R { return silu(a) * b; }
#endif
#if SILU_BACKWARD || SWIGLU_BACKWARD
fn slope(a: f32) -> f32 {
    let s = sigmoids(a);
    return select(s.x + clamp(a, -128.0, 128.0) * (s.x * s.y), a, is_nan(a));
}
#endif
#if SWIGLU_BACKWARD
fn apply(i: u32, a: A, b: B, c: C) -> R { return c * b * slope(a); }
#endif
#if GELU_TANH || GELU_TANH_BACKWARD
// (1 + tanh(z)) / 2 is 1 / (1 + e^-2z); this is 2z, of at most 16 and at least -16, where nothing is left of e^-2z.
fn twice_z(a: f32) -> f32 { return a * (1.5957691 + 0.071354814 * a * a); }
#endif
#if GELU_TANH
fn apply(i: u32, a: A) -> R {
    let near = clamp(a, -16.0, 16.0);
    return select(max(a, -16.0) * sigmoids(twice_z(near)).x, a, is_nan(a));
}
#endif
#if GELU_TANH_BACKWARD
fn slope(a: f32) -> f32 {
    let near = clamp(a, -16.0, 16.0);
    let s = sigmoids(twice_z(near));
    let steep = near * (1.5957691 + 0.21406444 * near * near);
    return select(s.x + steep * (s.x * s.y), a, is_nan(a));
}
#endif
#if SILU_BACKWARD || GELU_TANH_BACKWARD
fn apply(i: u32, a: A, b: B) -> R { return b * slope(a); }
#endif
