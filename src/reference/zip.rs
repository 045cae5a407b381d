//! `z[i] = f(x[i], y[i])`.

use super::Number;
use super::judge::{Wanted, by_input, input, output_shape, settings, there};
use super::number::{readings, rounding, spread, ulp};
use crate::elementwise::ZipFn;
use crate::error::{Result, err};
use crate::program::OpCall;
use half::f16;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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
/// [`Shape`](crate::ErrorKind::Shape) when the lengths differ, and
/// [`Unsupported`](crate::ErrorKind::Unsupported) for [`Custom`](ZipFn::Custom), whose text only a
/// device can run.
pub fn zip<T: Number>(function: &ZipFn, x: &[T], y: &[T]) -> Result<Vec<T>> {
    if x.len() != y.len() {
        return Err(err!(Shape, "reference zip: x has {} elements, y {}; they must agree", x.len(), y.len()));
    }
    if let ZipFn::Custom(_) = function {
        return Err(err!(Unsupported, "reference zip: `custom` runs only on a device, not on {}", T::DTYPE));
    }
    Ok(x.iter().zip(y).map(|(x, y)| T::narrow(apply::<T>(function, x.widen(), y.widen()))).collect())
}

/// Returns the error bound of each element against [`zip`], by the errors that WGSL allows.
///
/// A result of `add`, `sub` and `mul` is one of the two f32 around the exact one. `div` errs by 2.5 ULP
/// where `|y|` is 0, infinite or from 2^-126 to 2^126, and elsewhere without bound. Subnormal numbers may be
/// taken for 0, also where two of them are compared. Halves are rounded to nearest after all that. Integers are exact.
///
/// # Errors
/// As [`zip`].
pub fn zip_bound<T: Number>(function: &ZipFn, x: &[T], y: &[T]) -> Result<Vec<f64>> {
    let want = zip(function, x, y)?;
    if !T::DTYPE.is_float() {
        return Ok(vec![0.0; x.len()]);
    }
    let of = |x: f64, y: f64, want: T| {
        let mut bound = 0.0f64;
        for x in readings(x) {
            for y in readings(y) {
                let exact = apply::<f32>(function, x, y);
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

fn apply<T: Number>(function: &ZipFn, a: T::Wide, b: T::Wide) -> T::Wide {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use half::f16;

    fn all<T: Number>(x: &[T], y: &[T]) -> [Vec<T>; 6] {
        ZipFn::BUILT_IN.map(|f| zip(&f, x, y).unwrap())
    }

    #[test]
    fn floats_match_values_known_by_heart() {
        let [add, sub, mul, div, min, max] = all(&[6.0f32, -1.0, 0.0], &[2.0, 0.5, 0.0]);
        assert_eq!(add, [8.0, -0.5, 0.0]);
        assert_eq!(sub, [4.0, -1.5, 0.0]);
        assert_eq!(mul, [12.0, -0.5, 0.0]);
        assert_eq!(div[..2], [3.0, -2.0]);
        assert!(div[2].is_nan());
        assert_eq!(min, [2.0, -1.0, 0.0]);
        assert_eq!(max, [6.0, 0.5, 0.0]);
    }

    #[test]
    fn min_and_max_keep_nan_from_either_side() {
        for f in [ZipFn::Min, ZipFn::Max] {
            let z = zip(&f, &[f32::NAN, 1.0, f32::NAN], &[1.0, f32::NAN, f32::NAN]).unwrap();
            assert!(z.iter().all(|z| z.is_nan()), "{f}: {z:?}");
        }
    }

    #[test]
    fn halves_are_rounded_once() {
        let h = f16::from_f32;
        let [add, _, mul, div, ..] = all(&[h(2048.0), h(60000.0)], &[h(1.0), h(60000.0)]);
        assert_eq!(add, [h(2048.0), f16::INFINITY]);
        assert_eq!(mul, [h(2048.0), f16::INFINITY]);
        assert_eq!(div, [h(2048.0), f16::ONE]);
    }

    #[test]
    fn integers_wrap_and_divide_by_wgsls_rule() {
        let [add, sub, mul, div, min, max] = all(&[7, -7, i32::MIN, i32::MAX], &[0, 2, -1, i32::MAX]);
        assert_eq!(add, [7, -5, i32::MAX, -2]);
        assert_eq!(sub, [7, -9, i32::MIN + 1, 0]);
        assert_eq!(mul, [0, -14, i32::MIN, 1]);
        assert_eq!(div, [7, -3, i32::MIN, 1]);
        assert_eq!(min, [0, -7, i32::MIN, i32::MAX]);
        assert_eq!(max, [7, 2, -1, i32::MAX]);
        let [add, sub, mul, div, ..] = all(&[9, u32::MAX], &[0, u32::MAX]);
        assert_eq!(add, [9, u32::MAX - 1]);
        assert_eq!(sub, [9, 0]);
        assert_eq!(mul, [0, 1]);
        assert_eq!(div, [9, 1]);
    }

    #[test]
    fn lengths_that_differ_and_custom_functions_are_refused() {
        let kind = |f, y: &[f32]| zip(&f, &[1.0], y).unwrap_err().kind();
        assert_eq!(kind(ZipFn::Add, &[]), ErrorKind::Shape);
        let custom = ZipFn::custom("fn zip(x: T, y: T) -> T { return x; }");
        assert_eq!(kind(custom, &[1.0]), ErrorKind::Unsupported);
    }

    #[test]
    fn bounds_are_those_of_wgsl() {
        let u = 2f64.powi(-23);
        let of = |f, x: f32, y: f32| zip_bound(&f, &[x], &[y]).unwrap()[0];
        assert_eq!(of(ZipFn::Add, 0.5, 0.25), 0.0);
        assert_eq!(of(ZipFn::Add, 1.0, 1e-10), u);
        assert_eq!(of(ZipFn::Mul, 1e-30, 1e-10), f64::from(1e-30f32 * 1e-10));
        assert_eq!(of(ZipFn::Div, 4.0, 4.0), 2.5 * u);
        assert_eq!(of(ZipFn::Div, 1.0, 1e-40), f64::INFINITY);
        assert_eq!(of(ZipFn::Min, 3.0, 1.0), 0.0);
        assert_eq!(of(ZipFn::Max, 1e-40, 2e-40), f64::from(2e-40f32));
        assert_eq!(zip_bound(&ZipFn::Div, &[7], &[0]).unwrap(), [0.0]);
        let [x, y] = [1.5, 1.125].map(f16::from_f32);
        assert_eq!(zip_bound(&ZipFn::Mul, &[x], &[y]).unwrap(), [0.0]);
    }
}
