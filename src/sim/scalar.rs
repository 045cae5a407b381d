//! WGSL arithmetic on rows of registers: a row holds one register of every lane of a subgroup.
//!
//! A register holds 32 bits: an integer, a `bool` as 0 or 1, an `f32`, or an `f16` as the `f32` of the same value.

use half::f16;
use naga::{BinaryOperator, MathFunction, ScalarKind};

/// Arguments: lanes, start of the result, starts of the operands.
pub(super) type Row1 = fn(&mut [u32], usize, usize, usize);
pub(super) type Row2 = fn(&mut [u32], usize, usize, usize, usize);
pub(super) type Row3 = fn(&mut [u32], usize, usize, usize, usize, usize);

/// What an operation is counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    /// Moves and control.
    #[default]
    None,
    /// Integers, comparisons, conversions.
    Integer,
    /// Additions and subtractions of floats, and operations of the same cost: minima, absolute values.
    Add,
    Multiply,
    /// Two floating-point operations.
    Fma,
    Divide,
    /// Roots, exponentials, trigonometric functions.
    Special,
}

impl Kind {
    /// Returns whether it can create a NaN.
    pub(super) fn is_float(self) -> bool {
        !matches!(self, Kind::None | Kind::Integer)
    }
}

macro_rules! row1 {
    (|$x:ident| $e:expr) => {
        (|r: &mut [u32], w: usize, d: usize, a: usize| {
            for l in 0..w {
                let $x = r[a + l];
                r[d + l] = $e;
            }
        }) as Row1
    };
}

macro_rules! row2 {
    (|$x:ident, $y:ident| $e:expr) => {
        (|r: &mut [u32], w: usize, d: usize, a: usize, b: usize| {
            for l in 0..w {
                let ($x, $y) = (r[a + l], r[b + l]);
                r[d + l] = $e;
            }
        }) as Row2
    };
}

macro_rules! row3 {
    (|$x:ident, $y:ident, $z:ident| $e:expr) => {
        (|r: &mut [u32], w: usize, d: usize, a: usize, b: usize, c: usize| {
            for l in 0..w {
                let ($x, $y, $z) = (r[a + l], r[b + l], r[c + l]);
                r[d + l] = $e;
            }
        }) as Row3
    };
}

macro_rules! float1 {
    (|$x:ident| $e:expr) => {
        row1!(|x| {
            let $x = f(x);
            ($e).to_bits()
        })
    };
}

macro_rules! float2 {
    (|$x:ident, $y:ident| $e:expr) => {
        row2!(|x, y| {
            let ($x, $y) = (f(x), f(y));
            ($e).to_bits()
        })
    };
}

fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

fn i(bits: u32) -> i32 {
    bits as i32
}

pub(super) fn to_f16(bits: u32) -> u16 {
    f16::from_f32(f(bits)).to_bits()
}

pub(super) fn from_f16(bits: u16) -> u32 {
    f16::from_bits(bits).to_f32().to_bits()
}

pub(super) const ROUND_F16: Row1 = row1!(|x| from_f16(to_f16(x)));
pub(super) const COPY: Row1 = row1!(|x| x);
pub(super) const NOT: Row1 = row1!(|x| x ^ 1);
pub(super) const BIT_NOT: Row1 = row1!(|x| !x);
pub(super) const NEGATE_FLOAT: Row1 = row1!(|x| x ^ 0x8000_0000);
pub(super) const NEGATE_INTEGER: Row1 = row1!(|x| x.wrapping_neg());
pub(super) const AND: Row2 = row2!(|x, y| x & y);
pub(super) const OR: Row2 = row2!(|x, y| x | y);
pub(super) const ADD: Row2 = float2!(|x, y| x + y);
pub(super) const SUBTRACT: Row2 = float2!(|x, y| x - y);
pub(super) const MULTIPLY: Row2 = float2!(|x, y| x * y);
pub(super) const DIVIDE: Row2 = float2!(|x, y| x / y);
pub(super) const MULTIPLY_INTEGER: Row2 = row2!(|x, y| x.wrapping_mul(y));
pub(super) const ADD_INTEGER: Row2 = row2!(|x, y| x.wrapping_add(y));
pub(super) const SUBTRACT_INTEGER: Row2 = row2!(|x, y| x.wrapping_sub(y));
pub(super) const SQRT: Row1 = float1!(|x| x.sqrt());
pub(super) const SELECT: Row3 = row3!(|c, a, b| if c != 0 { a } else { b });
pub(super) const FMA: Row3 = row3!(|x, y, z| f(x).mul_add(f(y), f(z)).to_bits());
pub(super) const IS_NAN: Row1 = row1!(|x| u32::from(f(x).is_nan()));
pub(super) const IS_INF: Row1 = row1!(|x| u32::from(f(x).is_infinite()));

/// Returns the bits `offset .. offset + count` of `x`, and `count` clipped to the word.
fn extract(x: u32, offset: u32, count: u32) -> (u32, u32) {
    let offset = offset.min(32);
    let count = count.min(32 - offset);
    if count == 0 { (0, 0) } else { ((x >> offset) & (u32::MAX >> (32 - count)), count) }
}

pub(super) const EXTRACT_UNSIGNED: Row3 = row3!(|x, o, c| extract(x, o, c).0);
pub(super) const EXTRACT_SIGNED: Row3 = row3!(|x, o, c| {
    let (bits, count) = extract(x, o, c);
    if count == 0 { 0 } else { ((bits << (32 - count)) as i32 >> (32 - count)) as u32 }
});
/// The mask of the bits that `insertBits` replaces, from offset and count.
pub(super) const INSERT_MASK: Row2 = row2!(|o, c| {
    let offset = o.min(32);
    let count = c.min(32 - offset);
    if count == 0 { 0 } else { (u32::MAX >> (32 - count)) << offset }
});
/// Inserts bits that are already in place, by a mask.
pub(super) const INSERT: Row3 = row3!(|x, new, mask| (x & !mask) | (new & mask));
/// Shifts left; by 32 or more gives 0. For builtins that define it.
pub(super) const SHIFT_WIDE: Row2 = row2!(|x, by| x.checked_shl(by).unwrap_or(0));

/// Checks of operations that some operands make invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    DivideSigned,
    DivideUnsigned,
    Shift,
}

impl Guard {
    /// Describes the error, if the operands are invalid.
    pub(super) fn wrong(self, a: u32, b: u32) -> Option<&'static str> {
        match self {
            Guard::DivideSigned | Guard::DivideUnsigned if b == 0 => Some("division by zero"),
            Guard::DivideSigned if i(a) == i32::MIN && i(b) == -1 => Some("division overflows: -2147483648 / -1"),
            Guard::Shift if b >= 32 => Some("shift by 32 bits or more"),
            _ => None,
        }
    }
}

/// Returns a binary operation on one component: function, kind, check.
pub(super) fn binary(op: BinaryOperator, kind: ScalarKind) -> Option<(Row2, Kind, Option<Guard>)> {
    use BinaryOperator as B;
    let float = kind == ScalarKind::Float;
    let signed = kind == ScalarKind::Sint;
    let int = |row| Some((row, Kind::Integer, None));
    match op {
        B::Add if float => Some((ADD, Kind::Add, None)),
        B::Subtract if float => Some((SUBTRACT, Kind::Add, None)),
        B::Multiply if float => Some((MULTIPLY, Kind::Multiply, None)),
        B::Divide if float => Some((DIVIDE, Kind::Divide, None)),
        B::Modulo if float => Some((float2!(|x, y| x % y), Kind::Divide, None)),
        B::Add => int(ADD_INTEGER),
        B::Subtract => int(SUBTRACT_INTEGER),
        B::Multiply => int(MULTIPLY_INTEGER),
        B::Divide if signed => Some((
            row2!(|x, y| if y == 0 { x } else { i(x).wrapping_div(i(y)) as u32 }),
            Kind::Integer,
            Some(Guard::DivideSigned),
        )),
        B::Divide => Some((row2!(|x, y| x.checked_div(y).unwrap_or(x)), Kind::Integer, Some(Guard::DivideUnsigned))),
        B::Modulo if signed => Some((
            row2!(|x, y| if y == 0 { 0 } else { i(x).wrapping_rem(i(y)) as u32 }),
            Kind::Integer,
            Some(Guard::DivideSigned),
        )),
        B::Modulo => Some((row2!(|x, y| x.checked_rem(y).unwrap_or(0)), Kind::Integer, Some(Guard::DivideUnsigned))),
        B::Equal if float => int(row2!(|x, y| u32::from(f(x) == f(y)))),
        B::Equal => int(row2!(|x, y| u32::from(x == y))),
        B::NotEqual if float => int(row2!(|x, y| u32::from(f(x) != f(y)))),
        B::NotEqual => int(row2!(|x, y| u32::from(x != y))),
        B::Less if float => int(row2!(|x, y| u32::from(f(x) < f(y)))),
        B::Less if signed => int(row2!(|x, y| u32::from(i(x) < i(y)))),
        B::Less => int(row2!(|x, y| u32::from(x < y))),
        B::LessEqual if float => int(row2!(|x, y| u32::from(f(x) <= f(y)))),
        B::LessEqual if signed => int(row2!(|x, y| u32::from(i(x) <= i(y)))),
        B::LessEqual => int(row2!(|x, y| u32::from(x <= y))),
        B::Greater if float => int(row2!(|x, y| u32::from(f(x) > f(y)))),
        B::Greater if signed => int(row2!(|x, y| u32::from(i(x) > i(y)))),
        B::Greater => int(row2!(|x, y| u32::from(x > y))),
        B::GreaterEqual if float => int(row2!(|x, y| u32::from(f(x) >= f(y)))),
        B::GreaterEqual if signed => int(row2!(|x, y| u32::from(i(x) >= i(y)))),
        B::GreaterEqual => int(row2!(|x, y| u32::from(x >= y))),
        B::And | B::LogicalAnd => int(AND),
        B::InclusiveOr | B::LogicalOr => int(OR),
        B::ExclusiveOr => int(row2!(|x, y| x ^ y)),
        B::ShiftLeft => Some((row2!(|x, y| x.wrapping_shl(y)), Kind::Integer, Some(Guard::Shift))),
        B::ShiftRight if signed => Some((row2!(|x, y| i(x).wrapping_shr(y) as u32), Kind::Integer, Some(Guard::Shift))),
        B::ShiftRight => Some((row2!(|x, y| x.wrapping_shr(y)), Kind::Integer, Some(Guard::Shift))),
    }
}

pub(super) fn unary(fun: MathFunction, kind: ScalarKind) -> Option<(Row1, Kind)> {
    use MathFunction as M;
    let float = kind == ScalarKind::Float;
    let signed = kind == ScalarKind::Sint;
    let add = |row| Some((row, Kind::Add));
    let special = |row| Some((row, Kind::Special));
    let int = |row| Some((row, Kind::Integer));
    match fun {
        M::Abs if float => add(row1!(|x| x & 0x7fff_ffff)),
        M::Abs if signed => int(row1!(|x| i(x).wrapping_abs() as u32)),
        M::Abs => int(COPY),
        M::Saturate => add(float1!(|x| if x > 0.0 { x.min(1.0) } else { 0.0 })),
        M::Cos => special(float1!(|x| x.cos())),
        M::Cosh => special(float1!(|x| x.cosh())),
        M::Sin => special(float1!(|x| x.sin())),
        M::Sinh => special(float1!(|x| x.sinh())),
        M::Tan => special(float1!(|x| x.tan())),
        M::Tanh => special(float1!(|x| x.tanh())),
        M::Acos => special(float1!(|x| x.acos())),
        M::Asin => special(float1!(|x| x.asin())),
        M::Atan => special(float1!(|x| x.atan())),
        M::Asinh => special(float1!(|x| x.asinh())),
        M::Acosh => special(float1!(|x| x.acosh())),
        M::Atanh => special(float1!(|x| x.atanh())),
        M::Radians => Some((float1!(|x| x.to_radians()), Kind::Multiply)),
        M::Degrees => Some((float1!(|x| x.to_degrees()), Kind::Multiply)),
        M::Ceil => add(float1!(|x| x.ceil())),
        M::Floor => add(float1!(|x| x.floor())),
        M::Round => add(float1!(|x| x.round_ties_even())),
        M::Fract => add(float1!(|x| x - x.floor())),
        M::Trunc => add(float1!(|x| x.trunc())),
        M::Exp => special(float1!(|x| x.exp())),
        M::Exp2 => special(float1!(|x| x.exp2())),
        M::Log => special(float1!(|x| x.ln())),
        M::Log2 => special(float1!(|x| x.log2())),
        M::Sign if float => add(float1!(|x| if x > 0.0 {
            1.0f32
        } else if x < 0.0 {
            -1.0
        } else {
            0.0
        })),
        M::Sign => int(row1!(|x| i(x).signum() as u32)),
        M::Sqrt => special(SQRT),
        M::InverseSqrt => special(float1!(|x| 1.0 / x.sqrt())),
        M::QuantizeToF16 => add(ROUND_F16),
        M::CountTrailingZeros => int(row1!(|x| x.trailing_zeros())),
        M::CountLeadingZeros => int(row1!(|x| x.leading_zeros())),
        M::CountOneBits => int(row1!(|x| x.count_ones())),
        M::ReverseBits => int(row1!(|x| x.reverse_bits())),
        M::FirstTrailingBit => int(row1!(|x| if x == 0 { u32::MAX } else { x.trailing_zeros() })),
        M::FirstLeadingBit if signed => int(row1!(|x| {
            let y = if i(x) < 0 { !x } else { x };
            31u32.wrapping_sub(y.leading_zeros())
        })),
        M::FirstLeadingBit => int(row1!(|x| 31u32.wrapping_sub(x.leading_zeros()))),
        _ => None,
    }
}

pub(super) fn binary_math(fun: MathFunction, kind: ScalarKind) -> Option<(Row2, Kind)> {
    use MathFunction as M;
    let float = kind == ScalarKind::Float;
    let signed = kind == ScalarKind::Sint;
    match fun {
        M::Min if float => Some((float2!(|x, y| x.min(y)), Kind::Add)),
        M::Min if signed => Some((row2!(|x, y| i(x).min(i(y)) as u32), Kind::Integer)),
        M::Min => Some((row2!(|x, y| x.min(y)), Kind::Integer)),
        M::Max if float => Some((float2!(|x, y| x.max(y)), Kind::Add)),
        M::Max if signed => Some((row2!(|x, y| i(x).max(i(y)) as u32), Kind::Integer)),
        M::Max => Some((row2!(|x, y| x.max(y)), Kind::Integer)),
        M::Atan2 => Some((float2!(|y, x| y.atan2(x)), Kind::Special)),
        M::Pow => Some((float2!(|x, y| x.powf(y)), Kind::Special)),
        M::Step => Some((float2!(|edge, x| if edge <= x { 1.0f32 } else { 0.0 }), Kind::Add)),
        M::Ldexp => Some((
            row2!(|x, e| {
                // Two factors, so that neither exceeds the range of exponents.
                let e = i(e).clamp(-300, 300);
                (f(x) * 2f32.powi(e / 2) * 2f32.powi(e - e / 2)).to_bits()
            }),
            Kind::Multiply,
        )),
        _ => None,
    }
}

pub(super) fn ternary_math(fun: MathFunction, kind: ScalarKind) -> Option<(Row3, Kind)> {
    use MathFunction as M;
    match (fun, kind) {
        (M::Clamp, ScalarKind::Float) => Some((row3!(|x, lo, hi| f(x).max(f(lo)).min(f(hi)).to_bits()), Kind::Add)),
        (M::Clamp, ScalarKind::Sint) => Some((row3!(|x, lo, hi| i(x).max(i(lo)).min(i(hi)) as u32), Kind::Integer)),
        (M::Clamp, _) => Some((row3!(|x, lo, hi| x.max(lo).min(hi)), Kind::Integer)),
        (M::Fma, _) => Some((FMA, Kind::Fma)),
        (M::Mix, _) => Some((row3!(|x, y, t| (f(x) * (1.0 - f(t)) + f(y) * f(t)).to_bits()), Kind::Fma)),
        (M::SmoothStep, _) => Some((
            row3!(|lo, hi, x| {
                let t = ((f(x) - f(lo)) / (f(hi) - f(lo))).clamp(0.0, 1.0);
                (t * t * (3.0 - 2.0 * t)).to_bits()
            }),
            Kind::Fma,
        )),
        _ => None,
    }
}

/// Returns a conversion between kinds. The caller rounds to f16.
pub(super) fn convert(from: ScalarKind, to: ScalarKind) -> Row1 {
    use ScalarKind::{Bool, Float, Sint, Uint};
    match (from, to) {
        (Float, Sint) => row1!(|x| f(x) as i32 as u32),
        (Float, Uint) => row1!(|x| f(x) as u32),
        (Float, Bool) => row1!(|x| u32::from(f(x) != 0.0)),
        (Sint, Float) => row1!(|x| (i(x) as f32).to_bits()),
        (Uint, Float) => row1!(|x| (x as f32).to_bits()),
        (Bool, Float) => row1!(|x| (x as f32).to_bits()),
        (_, Bool) => row1!(|x| u32::from(x != 0)),
        _ => COPY,
    }
}

/// The halves of a word as f16.
pub(super) const LOW_HALF: Row1 = row1!(|x| from_f16(x as u16));
pub(super) const HIGH_HALF: Row1 = row1!(|x| from_f16((x >> 16) as u16));
pub(super) const JOIN_HALVES: Row2 = row2!(|x, y| u32::from(to_f16(x)) | u32::from(to_f16(y)) << 16);

fn bytes4(x: u32) -> [u8; 4] {
    x.to_le_bytes()
}

pub(super) fn unpack(fun: MathFunction, component: usize) -> Option<Row1> {
    use MathFunction as M;
    macro_rules! pick {
        (|$x:ident, $c:ident| $e:expr) => {
            match component {
                0 => row1!(|$x| {
                    const $c: usize = 0;
                    $e
                }),
                1 => row1!(|$x| {
                    const $c: usize = 1;
                    $e
                }),
                2 => row1!(|$x| {
                    const $c: usize = 2;
                    $e
                }),
                _ => row1!(|$x| {
                    const $c: usize = 3;
                    $e
                }),
            }
        };
    }
    Some(match fun {
        M::Unpack4x8snorm => pick!(|x, C| (f32::from(bytes4(x)[C] as i8) / 127.0).max(-1.0).to_bits()),
        M::Unpack4x8unorm => pick!(|x, C| (f32::from(bytes4(x)[C]) / 255.0).to_bits()),
        M::Unpack2x16snorm => {
            pick!(|x, C| (f32::from((x >> (16 * (C & 1))) as i16) / 32767.0).max(-1.0).to_bits())
        }
        M::Unpack2x16unorm => pick!(|x, C| (f32::from((x >> (16 * (C & 1))) as u16) / 65535.0).to_bits()),
        M::Unpack2x16float => pick!(|x, C| from_f16((x >> (16 * (C & 1))) as u16)),
        M::Unpack4xI8 => pick!(|x, C| i32::from(bytes4(x)[C] as i8) as u32),
        M::Unpack4xU8 => pick!(|x, C| u32::from(bytes4(x)[C])),
        _ => return None,
    })
}

/// Returns the function that packs one component, unshifted, and its number of bits.
pub(super) fn pack(fun: MathFunction) -> Option<(Row1, u32)> {
    use MathFunction as M;
    Some(match fun {
        M::Pack4x8snorm => (row1!(|x| (0.5 + 127.0 * f(x).clamp(-1.0, 1.0)).floor() as i32 as u32 & 0xff), 8),
        M::Pack4x8unorm => (row1!(|x| (0.5 + 255.0 * f(x).clamp(0.0, 1.0)).floor() as u32), 8),
        M::Pack2x16snorm => (row1!(|x| (0.5 + 32767.0 * f(x).clamp(-1.0, 1.0)).floor() as i32 as u32 & 0xffff), 16),
        M::Pack2x16unorm => (row1!(|x| (0.5 + 65535.0 * f(x).clamp(0.0, 1.0)).floor() as u32), 16),
        M::Pack2x16float => (row1!(|x| u32::from(to_f16(x))), 16),
        M::Pack4xI8 | M::Pack4xU8 => (row1!(|x| x & 0xff), 8),
        M::Pack4xI8Clamp => (row1!(|x| i(x).clamp(-128, 127) as u32 & 0xff), 8),
        M::Pack4xU8Clamp => (row1!(|x| x.min(255)), 8),
        _ => return None,
    })
}

pub(super) fn dot_packed(fun: MathFunction) -> Option<Row2> {
    match fun {
        MathFunction::Dot4I8Packed => Some(row2!(|x, y| {
            let products = bytes4(x).into_iter().zip(bytes4(y)).map(|(a, b)| i32::from(a as i8) * i32::from(b as i8));
            products.sum::<i32>() as u32
        })),
        MathFunction::Dot4U8Packed => {
            Some(row2!(|x, y| bytes4(x).into_iter().zip(bytes4(y)).map(|(a, b)| u32::from(a) * u32::from(b)).sum()))
        }
        _ => None,
    }
}

/// Results of `frexp` (fraction, exponent) and `modf` (fraction, whole).
pub(super) const FRACTION: Row1 = row1!(|x| frexp(x).0);
pub(super) const EXPONENT: Row1 = row1!(|x| frexp(x).1);
pub(super) const PART: Row1 = float1!(|x| x - x.trunc());
pub(super) const WHOLE: Row1 = float1!(|x| x.trunc());

fn frexp(x: u32) -> (u32, u32) {
    let value = f(x);
    if value == 0.0 || !value.is_finite() {
        return (x, 0);
    }
    let scaled = f64::from(value);
    let exponent = ((scaled.to_bits() >> 52) & 0x7ff) as i32 - 1022;
    (((scaled / 2f64.powi(exponent)) as f32).to_bits(), exponent as u32)
}

#[cfg(test)]
mod tests;
