//! The numbers that references compute with.

use crate::element::Element;
use half::f16;
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

    /// The same value, wider.
    fn widen(self) -> Self::Wide;

    /// The nearest value of this type (floats), or the value modulo a power of 2 (integers).
    fn narrow(wide: Self::Wide) -> Self;

    /// The value as an `f64`.
    fn to_f64(self) -> f64;

    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;

    /// A scalar argument as a kernel gets it: rounded to `f32` for floats, a whole number otherwise.
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
float!(f16, f16::to_f64, f16::from_f64);

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
integer!(i32, u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_round_once_and_integers_wrap() {
        assert_eq!(f32::narrow(1.0 + 2f64.powi(-25)), 1.0);
        assert_eq!(f16::narrow(65520.0), f16::INFINITY);
        assert_eq!(f16::narrow(1.0 + 2f64.powi(-11)), f16::ONE);
        assert_eq!(i32::narrow(1 << 31), i32::MIN);
        assert_eq!(u32::narrow(-1), u32::MAX);
        assert_eq!(f32::scalar(0.1), f64::from(0.1f32));
        assert_eq!(i32::scalar(-3.0), -3);
    }
}
