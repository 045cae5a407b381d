// Multiplies dy by the slope of an activation, in the kernel of zip. `value` is the result of the activation; for GELU
// and none it is the input.
#if RELU
// Compares bits, like the activation: -infinity to -0, and 0, have slope 0.
fn zip(value: T, gradient: T) -> T {
    let bits = bitcast<u32>(value);
    return select(gradient, 0.0, bits == 0u || (bits >= 0x80000000u && bits <= 0xff800000u));
}
#endif
#if SIGMOID
fn zip(value: T, gradient: T) -> T { return gradient * (value * (1.0 - value)); }
#endif
#if TANH
fn zip(value: T, gradient: T) -> T { return gradient * ((1.0 - value) * (1.0 + value)); }
#endif
#if GELU
// Phi(x) + x phi(x). For |x| >= 16 this is 1 or 0 in f32; the clamp avoids infinity times 0.
#import activation/normal
fn zip(value: T, gradient: T) -> T {
    let a = min(abs(value), 16.0);
    let tail = normal_tail(a);
    let rest = 0.3989423 * a * exp(-0.5 * a * a);
    let slope = select(1.0 - tail + rest, tail - rest, value < 0.0);
    return gradient * select(slope, value, is_nan(value));
}
#endif
#if NONE
fn zip(value: T, gradient: T) -> T { return gradient; }
#endif
