use super::activation::activate;
use super::prelude::*;
use crate::elementwise::Activation;
use crate::elementwise::MapFn;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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
    Ok(x.iter().map(|&x| apply(function, x)).collect())
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

fn apply<T: Number>(function: &MapFn, x: T) -> T {
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

#[cfg(test)]
#[path = "tests/map.rs"]
mod tests;
