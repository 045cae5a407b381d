use super::prelude::*;
use crate::elementwise::{Activation, MapFn, ZipFn};
use std::f64::consts::PI;

judges! { map => judge_map, zip => judge_zip, axpy => judge_axpy, scal => judge_scal }

fn judge_map(call: &OpCall) -> Result<Vec<Wanted>> {
    let function: MapFn = settings(call)?.choice("fn")?.parse()?;
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let all = input::<T>(call, 0)?;
        let (shape, x) = (output_shape(call, 0), &all[..there(call, all.len())?]);
        let (mut y, mut bound) = (map(&function, x)?, map_bound(&function, x)?);
        // In place, elements behind the length stay.
        y.extend(&all[x.len()..shape.iter().product()]);
        bound.resize(y.len(), 0.0);
        Ok(vec![Wanted::near(&shape, y, bound)?])
    })
}

/// Applies `function` to every element of `x`.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) for a function that is not defined on `T`, and for
/// [`Custom`](MapFn::Custom), whose text only a device can run.
pub fn map<T: Number>(function: &MapFn, x: &[T]) -> Result<Vec<T>> {
    if !function.supports(T::DTYPE) || matches!(function, MapFn::Custom(_)) {
        return Err(err!(Unsupported, "reference map: `{function}` is not defined on {}", T::DTYPE));
    }
    Ok(x.iter().map(|&x| map_apply(function, x)).collect())
}

/// Bounds the error of a kernel's result against [`map`], for each element, by the errors that WGSL allows.
///
/// With u = 2^-23 and y the exact result, the bounds in f32 are:
///
/// | function | error at most |
/// |---|---|
/// | `neg`, `abs`, `relu`, `sign` | 0 |
/// | `exp` | `(3 + 2 abs(x)) u y` |
/// | `sqrt` | `4.5 u y` |
/// | `sigmoid` | `((1 - y) (3 + 2 abs(x)) + 3.5) u y` |
/// | `tanh`, abs(x) < 0.625 | `3 u abs(y)` |
/// | `tanh` | `((1 - abs(y)) (3.5 + (1 + abs(y)) (3 + 4 abs(x)) / 2) + 1) u` |
/// | `gelu` | `u abs(y) + (16 + x^2) u abs(max(x, 0) - y)` |
///
/// Devices may flush subnormal numbers to 0, and f16 is rounded to nearest at the end; the bound includes both.
/// Integers are exact.
pub fn map_bound<T: Number>(function: &MapFn, x: &[T]) -> Result<Vec<f64>> {
    let want = map(function, x)?;
    if !T::DTYPE.is_float() {
        return Ok(vec![0.0; x.len()]);
    }
    let bound = |(x, want): (&T, T)| {
        let of = |x: f64| {
            let exact = match function {
                MapFn::Neg => -x,
                MapFn::Abs => x.abs(),
                MapFn::Relu => x.max(0.0),
                MapFn::Sign if x == 0.0 => 0.0,
                MapFn::Sign => x.signum(),
                _ => smooth(function, x),
            };
            spread(want, exact, error(function, x, exact))
        };
        readings(x.to_f64()).map(of).into_iter().fold(0.0, f64::max)
    };
    Ok(x.iter().zip(want).map(bound).collect())
}

fn map_apply<T: Number>(function: &MapFn, x: T) -> T {
    let zero = T::Wide::default();
    let wide = x.widen();
    match function {
        MapFn::Neg => T::narrow(-wide),
        // Of -0 too.
        MapFn::Abs | MapFn::Relu if wide == zero => T::narrow(zero),
        MapFn::Abs if wide < zero => T::narrow(-wide),
        MapFn::Relu if wide < zero => T::narrow(zero),
        MapFn::Exp | MapFn::Sqrt | MapFn::Sigmoid | MapFn::Tanh | MapFn::Gelu => {
            T::from_f64(smooth(function, x.to_f64()))
        }
        MapFn::Sign if wide < zero => T::from_f64(-1.0),
        MapFn::Sign if wide > zero => T::from_f64(1.0),
        MapFn::Abs | MapFn::Relu | MapFn::Sign | MapFn::Custom(_) => x,
    }
}

/// The functions whose results are rounded.
fn smooth(function: &MapFn, x: f64) -> f64 {
    match function {
        MapFn::Exp => x.exp(),
        MapFn::Sqrt => x.sqrt(),
        MapFn::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        MapFn::Tanh => x.tanh(),
        MapFn::Gelu => activate(Activation::Gelu, x),
        _ => x,
    }
}

/// How far the f32 that a kernel computes for `function` of `x` may be from `y`: see [`map_bound`].
fn error(function: &MapFn, x: f64, y: f64) -> f64 {
    let u = 2f64.powi(-23);
    let (a, size) = (x.abs(), y.abs());
    match function {
        _ if a.is_infinite() => 0.0,
        // The tail may be taken for 0, before it is multiplied by x or after.
        MapFn::Gelu => {
            u * size + (16.0 + a * a) * u * (x.max(0.0) - y).abs() + (1.0 + a.min(16.0)) * f64::from(f32::MIN_POSITIVE)
        }
        MapFn::Exp => (3.0 + 2.0 * a) * u * size,
        MapFn::Sqrt => 4.5 * u * size,
        MapFn::Sigmoid => ((1.0 - y) * (3.0 + 2.0 * a) + 3.5) * u * size,
        MapFn::Tanh if a < 0.625 => 3.0 * u * size,
        MapFn::Tanh => ((1.0 - size) * (3.5 + (1.0 + size) * (3.0 + 4.0 * a) / 2.0) + 1.0) * u,
        _ => 0.0,
    }
}

fn judge_zip(call: &OpCall) -> Result<Vec<Wanted>> {
    let function: ZipFn = settings(call)?.choice("fn")?.parse()?;
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let n = there(call, input::<T>(call, 0)?.len())?;
        let (x, y) = (&input::<T>(call, 0)?[..n], &input::<T>(call, 1)?[..n]);
        Ok(vec![Wanted::near(&output_shape(call, 0), zip(&function, x, y)?, zip_bound(&function, x, y)?)?])
    })
}

/// Applies `function` to every pair of elements.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape) when the lengths differ, and
/// [`Unsupported`](ErrorKind::Unsupported) for [`Custom`](ZipFn::Custom), whose text only a
/// device can run.
pub fn zip<T: Number>(function: &ZipFn, x: &[T], y: &[T]) -> Result<Vec<T>> {
    if x.len() != y.len() {
        return Err(err!(Shape, "reference zip: x has {} elements, y {}; they must agree", x.len(), y.len()));
    }
    if let ZipFn::Custom(_) = function {
        return Err(err!(Unsupported, "reference zip: `custom` runs only on a device, not on {}", T::DTYPE));
    }
    Ok(x.iter().zip(y).map(|(x, y)| T::narrow(zip_apply::<T>(function, x.widen(), y.widen()))).collect())
}

/// Returns the error bound of each element against [`zip`], by the errors that WGSL allows.
///
/// A result of `add`, `sub` and `mul` is one of the two f32 around the exact one. `div` errs by 2.5 ULP
/// where `|y|` is 0, infinite or from 2^-126 to 2^126, and elsewhere without bound. Subnormal numbers may be
/// taken for 0, also where two of them are compared. Halves are rounded to nearest after all that. Integers are exact.
pub fn zip_bound<T: Number>(function: &ZipFn, x: &[T], y: &[T]) -> Result<Vec<f64>> {
    let want = zip(function, x, y)?;
    if !T::DTYPE.is_float() {
        return Ok(vec![0.0; x.len()]);
    }
    let of = |x: f64, y: f64, want: T| {
        let mut bound = 0.0f64;
        for x in readings(x) {
            for y in readings(y) {
                let exact = zip_apply::<f32>(function, x, y);
                let error = match function {
                    ZipFn::Add | ZipFn::Sub | ZipFn::Mul => rounding(exact),
                    ZipFn::Div => 2.5 * ulp(exact),
                    _ => 0.0,
                };
                bound = bound.max(spread(want, exact, error));
            }
        }
        bound
    };
    let certain = 2f64.powi(-126)..=2f64.powi(126);
    let bound = |((x, y), want): ((&T, &T), T)| {
        let (x, y) = (x.to_f64(), y.to_f64());
        match function {
            ZipFn::Div if y != 0.0 && y.is_finite() && !certain.contains(&y.abs()) => f64::INFINITY,
            // Taken for 0 they are equal, and either may come.
            ZipFn::Min | ZipFn::Max if readings(x)[1] == 0.0 && readings(y)[1] == 0.0 => {
                of(x, y, want).max((x - y).abs())
            }
            _ => of(x, y, want),
        }
    };
    Ok(x.iter().zip(y).zip(want).map(bound).collect())
}

fn zip_apply<T: Number>(function: &ZipFn, a: T::Wide, b: T::Wide) -> T::Wide {
    let is_nan = |v: T::Wide| v.partial_cmp(&v).is_none();
    match function {
        ZipFn::Add => a + b,
        ZipFn::Sub => a - b,
        ZipFn::Mul => a * b,
        ZipFn::Div if !T::DTYPE.is_float() && b == T::Wide::default() => a,
        ZipFn::Div => a / b,
        ZipFn::Min if is_nan(a) || (a <= b && !is_nan(b)) => a,
        ZipFn::Max if is_nan(a) || (a >= b && !is_nan(b)) => a,
        ZipFn::Min | ZipFn::Max | ZipFn::Custom(_) => b,
    }
}

fn judge_axpy(call: &OpCall) -> Result<Vec<Wanted>> {
    let mut alpha = option(call, "alpha")?;
    if let Some(given) = settings(call)?.array("device-alpha") {
        alpha = given.data().to_f64()[0];
    }
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let (x, mut y) = (input::<T>(call, 0)?, input::<T>(call, 1)?.to_vec());
        let there = there(call, x.len())?;
        let (x, front) = (&x[..there], &mut y[..there]);
        let mut bound = axpy_bound(alpha, x, front)?;
        axpy(alpha, x, front)?;
        bound.resize(y.len(), 0.0);
        Ok(vec![Wanted::near(&output_shape(call, 0), y, bound)?])
    })
}

/// Adds `alpha` times `x` to `y`; `alpha` is first converted to the number that the kernel gets.
pub fn axpy<T: Number>(alpha: f64, x: &[T], y: &mut [T]) -> Result<()> {
    if x.len() != y.len() {
        return Err(err!(Shape, "reference axpy: x has {} elements, y {}; they must agree", x.len(), y.len()));
    }
    let alpha = T::scalar(alpha);
    for (&x, y) in x.iter().zip(y) {
        *y = T::narrow(alpha * x.widen() + y.widen());
    }
    Ok(())
}

/// Returns the error bound of each element against [`axpy`]; `y` holds the elements before the op.
///
/// The product and the sum are each one of the two f32 around the exact one; nothing is promised where the
/// product alone overflows. Subnormal numbers may be taken for 0. Halves are rounded to nearest after all that.
/// Integers are exact.
pub fn axpy_bound<T: Number>(alpha: f64, x: &[T], y: &[T]) -> Result<Vec<f64>> {
    let mut want = y.to_vec();
    axpy(alpha, x, &mut want)?;
    if !T::DTYPE.is_float() {
        return Ok(vec![0.0; x.len()]);
    }
    let bound = |((x, y), want): ((&T, &T), T)| {
        let mut bound = 0.0f64;
        for alpha in readings(f32::scalar(alpha)) {
            for x in readings(x.to_f64()) {
                let exact = alpha * x;
                if exact.is_finite() && (exact as f32).is_infinite() {
                    return f64::INFINITY;
                }
                for product in readings(exact) {
                    for y in readings(y.to_f64()) {
                        let sum = product + y;
                        bound = bound.max(spread(want, sum, rounding(exact) + rounding(sum)));
                    }
                }
            }
        }
        bound
    };
    Ok(x.iter().zip(y).zip(want).map(bound).collect())
}

fn judge_scal(call: &OpCall) -> Result<Vec<Wanted>> {
    let mut alpha = option(call, "alpha")?;
    if let Some(given) = settings(call)?.array("device-alpha") {
        alpha = given.data().to_f64()[0];
    }
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        Ok(vec![Wanted::near(&output_shape(call, 0), scal(alpha, x), scal_bound(alpha, x))?])
    })
}

/// Multiplies by `alpha`, which is first converted to the number that the kernel gets.
pub fn scal<T: Number>(alpha: f64, x: &[T]) -> Vec<T> {
    x.iter().map(|x| T::narrow(T::scalar(alpha) * x.widen())).collect()
}

/// Returns the error bound of each element: one rounding in f32, and one to `T`. Integers are exact.
pub fn scal_bound<T: Number>(alpha: f64, x: &[T]) -> Vec<f64> {
    if !T::DTYPE.is_float() {
        return vec![0.0; x.len()];
    }
    let one = |(x, want): (&T, T)| {
        let products = readings(f32::scalar(alpha)).map(|alpha| readings(x.to_f64()).map(|x| alpha * x));
        products.iter().flatten().map(|p| spread(want, *p, rounding(*p))).fold(0.0, f64::max)
    };
    x.iter().zip(scal(alpha, x)).map(one).collect()
}

/// Applies `activation` to `x`.
pub fn activate(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Relu if x <= 0.0 => 0.0,
        Activation::Relu => x,
        Activation::Sigmoid if x < 0.0 => x.exp() / (1.0 + x.exp()),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
        // The limit, where the formula has infinity times 0.
        Activation::Gelu if x == f64::NEG_INFINITY => 0.0,
        Activation::Gelu => x * normal(x),
    }
}

/// Returns the steepest slope of `activation`, and its own error in f32, relative to 1 and to its result.
pub(super) fn activation_errors(activation: Activation) -> (f64, f64) {
    let own = 16.0 * 2f64.powi(-24);
    match activation {
        Activation::None | Activation::Relu => (1.0, 0.0),
        Activation::Sigmoid => (0.25, own),
        Activation::Tanh => (1.0, own),
        // x Phi(x) is steepest at sqrt(2).
        Activation::Gelu => (1.13, own),
    }
}

pub(super) fn normal(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
    if x > 3.0 {
        1.0 - normal(-x)
    } else if x < -3.0 {
        // Laplace's continued fraction, from its far end: density / (a + 1 / (a + 2 / (a + ...))).
        let a = -x;
        density / (1..=100).rev().fold(a, |rest, i| a + f64::from(i) / rest)
    } else {
        // Half, plus density (x + x^3 / 3 + x^5 / (3 5) + ...) (Marsaglia 2004).
        let terms = (1..=50).scan(x, |term, i| {
            let this = *term;
            *term *= x * x / f64::from(2 * i + 1);
            Some(this)
        });
        0.5 + density * terms.sum::<f64>()
    }
}

#[cfg(test)]
#[path = "tests/maps.rs"]
mod tests;
