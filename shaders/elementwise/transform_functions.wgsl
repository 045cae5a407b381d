// The built-in functions of Transform, one chosen by a flag. The importer declares A, B, C and R, the types of operands
// and of the output, and `is_nan`.
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
#if LESS || EQUAL
#if FROM_FLOAT
// A whole number in the order of floats: -0 and 0 have the same. Compared so, since devices may take small numbers for 0.
fn place(x: f32) -> i32 {
    let bits = bitcast<i32>(x);
    return select(bits, -(bits & 0x7fffffff), bits < 0);
}
fn compares(a: f32, b: f32) -> bool { return !is_nan(a) && !is_nan(b); }
#else
fn place(x: A) -> A { return x; }
fn compares(a: A, b: A) -> bool { return true; }
#endif
#endif
#if LESS
fn apply(i: u32, a: A, b: B) -> R { return select(R(0), R(1), place(a) < place(b) && compares(a, b)); }
#endif
#if EQUAL
fn apply(i: u32, a: A, b: B) -> R { return select(R(0), R(1), place(a) == place(b) && compares(a, b)); }
#endif
#if SILU || SWIGLU
// With e^-|a| so that nothing overflows; from 128 on that is 0 in f32.
fn silu(a: f32) -> f32 {
    let e = exp(-min(abs(a), 128.0));
    return select(a * select(1.0, e, a < 0.0) / (1.0 + e), a, is_nan(a));
}
#endif
#if SILU
fn apply(i: u32, a: A) -> R { return silu(a); }
#endif
#if SWIGLU
fn apply(i: u32, a: A, b: B) -> R { return silu(a) * b; }
#endif
