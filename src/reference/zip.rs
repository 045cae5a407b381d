use super::prelude::*;
use crate::elementwise::ZipFn;

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
    Ok(x.iter().zip(y).map(|(x, y)| T::narrow(apply::<T>(function, x.widen(), y.widen()))).collect())
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
#[path = "tests/zip.rs"]
mod tests;
