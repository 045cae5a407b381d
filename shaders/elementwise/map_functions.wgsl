// The built-in functions of Map, `fn map(x: T) -> T`, one chosen by a flag. All of them return NaN for NaN.
// The importer declares T and `is_nan`, as the files of `element` do.
#if NEG
fn map(x: T) -> T { return -x; }
#endif
#if ABS
fn map(x: T) -> T { return abs(x); }
#endif
#if RELU
fn map(x: T) -> T { return select(T(0), x, x > T(0) || is_nan(x)); }
#endif
#if EXP
fn map(x: T) -> T { return select(exp(x), x, is_nan(x)); }
#endif
#if SQRT
// WGSL leaves the root of a negative number open; setting the exponent bits of x makes it NaN.
fn map(x: T) -> T {
    let nan = bitcast<T>(bitcast<u32>(x) | 0x7fc00000u);
    return select(sqrt(x), nan, x < 0.0 || is_nan(x));
}
#endif
#if SIGMOID
// 1 / (1 + e^-x), with e^-|x| so that nothing overflows; from 128 on that is 0 in f32.
fn map(x: T) -> T {
    let e = exp(-min(abs(x), 128.0));
    return select(select(1.0, e, x < 0.0) / (1.0 + e), x, is_nan(x));
}
#endif
#if TANH
// S. L. Moshier's tanhf (Cephes): a polynomial near 0, where the other form cancels. From 10 on the
// result is 1 in f32; the built-in tanh overflows on several drivers.
fn map(x: T) -> T {
    let a = min(abs(x), 10.0);
    let z = a * a;
    let p = (((-5.70498872745e-3 * z + 2.06390887954e-2) * z - 5.37397155531e-2) * z + 1.33314422036e-1) * z
        - 3.33332819422e-1;
    let near = p * z * a + a;
    let far = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
    let y = select(far, near, a < 0.625);
    return select(select(y, -y, x < 0.0), x, is_nan(x));
}
#endif
#if GELU
#import activation/gelu

fn map(x: T) -> T { return activate(x); }
#endif
#if SIGN
// 0 keeps its sign.
fn map(x: T) -> T { return select(select(x, T(-1), x < T(0)), T(1), x > T(0)); }
#endif
