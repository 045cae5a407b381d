//! The numbers that references compute with.

use crate::element::Element;
use half::{bf16, f16};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// An element type with the wider type that references compute in: `f64` for floats, `i128` for integers.
pub trait Number: Element + PartialOrd {
    /// The wider type.
    type Wide: Copy
        + PartialOrd
        + Default
        + Add<Output = Self::Wide>
        + Sub<Output = Self::Wide>
        + Mul<Output = Self::Wide>
        + Div<Output = Self::Wide>
        + Neg<Output = Self::Wide>;

    /// Returns the same value in the wider type.
    fn widen(self) -> Self::Wide;

    /// Returns the nearest value of this type (floats), or the value modulo a power of 2 (integers).
    fn narrow(wide: Self::Wide) -> Self;

    /// Returns the value as `f64`.
    fn to_f64(self) -> f64;

    /// Returns the nearest value of this type.
    fn from_f64(value: f64) -> Self;

    /// Returns a scalar argument as kernels receive it: rounded to `f32` for floats, a whole number otherwise.
    fn scalar(value: f64) -> Self::Wide;
}

macro_rules! float {
    ($t:ty, $widen:expr, $narrow:expr) => {
        impl Number for $t {
            type Wide = f64;
            fn widen(self) -> f64 {
                $widen(self)
            }
            fn narrow(wide: f64) -> Self {
                $narrow(wide)
            }
            fn to_f64(self) -> f64 {
                $widen(self)
            }
            fn from_f64(value: f64) -> Self {
                $narrow(value)
            }
            fn scalar(value: f64) -> f64 {
                f64::from(value as f32)
            }
        }
    };
}
float!(f32, f64::from, |wide| wide as f32);
float!(f16, f16::to_f64, |wide| f16::from_f32(odd(wide)));
float!(bf16, bf16::to_f64, |wide| bf16::from_f32(odd(wide)));

/// Rounds to f32 to odd: towards 0, with the last bit set if the result is inexact. This creates no ties, so that a
/// following rounding to 16 bits is correct; `f16::from_f64` may round twice or drop the last bits.
fn odd(x: f64) -> f32 {
    let near = x as f32;
    let cut = if f64::from(near).abs() > x.abs() { near.to_bits() - 1 } else { near.to_bits() };
    let inexact = u32::from(f64::from(f32::from_bits(cut)) != x && !x.is_nan());
    f32::from_bits(cut | inexact)
}

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl Number for $t {
            type Wide = i128;
            fn widen(self) -> i128 {
                i128::from(self)
            }
            fn narrow(wide: i128) -> Self {
                wide as $t
            }
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn from_f64(value: f64) -> Self {
                value.round() as $t
            }
            fn scalar(value: f64) -> i128 {
                value as i128
            }
        }
    )*};
}
integer!(i32, u32, u8, i8);

/// The smallest normal f32. WGSL lets a device flush smaller numbers, read or computed, to 0.
pub(super) const LEAST_NORMAL: f64 = f32::MIN_POSITIVE as f64;

/// Bounds the relative error of a mean of squares plus epsilon whose squares may be flushed to 0: infinite where no
/// square need be left.
pub(super) fn of_flushed_squares(square: f64) -> f64 {
    let share = LEAST_NORMAL / square;
    if share < 0.5 { share } else { f64::INFINITY }
}

/// Returns WGSL's ULP, the distance of the two f32 around `x`.
pub(super) fn ulp(x: f64) -> f64 {
    // From the exponent of the f64: an f32 has 23 bits below it, and no step below 2^-149.
    let exponent = ((x.abs().to_bits() >> 52) as i32 - 1023).max(-126);
    2f64.powi(exponent - 23)
}

/// Bounds the error of a correctly rounded f32; WGSL allows either direction.
pub(super) fn rounding(exact: f64) -> f64 {
    if f64::from(exact as f32) == exact { 0.0 } else { ulp(exact) }
}

/// Returns the values as which a device may read `x`.
pub(super) fn readings(x: f64) -> [f64; 2] {
    [x, if x.abs() < LEAST_NORMAL { 0.0 } else { x }]
}

/// Bounds the distance from `want` of a `T` that was rounded from an f32 within `error` of `exact`.
pub(super) fn spread<T: Number>(want: T, exact: f64, error: f64) -> f64 {
    let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
    if !exact.is_finite() || want.to_f64().is_nan() {
        // If flushed operands change the kind of the result, anything is allowed.
        return if same(exact, want.to_f64()) { 0.0 } else { f64::INFINITY };
    }
    if error.is_nan() {
        return f64::INFINITY; // 0 times an unbounded relative error
    }
    // Rounding is monotone, so the ends of the interval give the ends of the results.
    let flushed = if exact.abs() - error < LEAST_NORMAL { 0.0 } else { exact };
    let want = want.to_f64();
    let distance = |end: f64| {
        let end = T::from_f64(end).to_f64();
        if end == want { 0.0 } else { (end - want).abs() }
    };
    [exact - error, exact + error, flushed].map(distance).into_iter().fold(0.0, f64::max)
}

/// Bounds the error of the exponential of a rounded d, in ULP.
pub(super) fn exp_ulps(d: f64) -> f64 {
    3.0 + 3.0 * d.abs()
}

/// Returns the longest chain of f32 additions over a row of n: within a lane, across lanes, across parts.
pub(super) fn chain(n: usize) -> f64 {
    n.min(160 + (n >> 16)) as f64
}

#[cfg(test)]
#[path = "tests/number.rs"]
mod tests;
