//! `y[i] = alpha x[i] + y[i]`.

use super::Number;
use super::judge::{Wanted, by_input, input, option, output_shape, settings, there};
use super::number::{readings, rounding, spread};
use crate::error::{Result, err};
use crate::program::OpCall;
use half::f16;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape) when the lengths differ.
pub fn axpy<T: Number>(alpha: f64, x: &[T], y: &mut [T]) -> Result<()> {
    if x.len() != y.len() {
        return Err(err!(
            Shape,
            "reference axpy: x has {} elements, y {}; they must agree",
            x.len(),
            y.len()
        ));
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
///
/// # Errors
/// As [`axpy`].
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use half::f16;

    #[test]
    fn axpy_matches_values_known_by_heart() {
        let mut y = [1.0f32, 2.0, 3.0];
        axpy(0.5, &[2.0, 4.0, -6.0], &mut y).unwrap();
        assert_eq!(y, [2.0, 4.0, 0.0]);
        let mut y = [f16::from_f32(60000.0), f16::ONE];
        axpy(-2.0, &[f16::from_f32(30000.0), f16::ONE], &mut y).unwrap();
        assert_eq!(y, [f16::ZERO, f16::NEG_ONE]);
        let mut y = [1, i32::MAX];
        axpy(-3.0, &[2, -1], &mut y).unwrap();
        assert_eq!(y, [-5, i32::MIN + 2]);
        let mut y = [1, 1];
        axpy(4294967295.0, &[1, u32::MAX], &mut y).unwrap();
        assert_eq!(y, [0, 2]);
    }

    #[test]
    fn lengths_that_differ_are_refused() {
        assert_eq!(axpy(1.0, &[1.0f32], &mut []).unwrap_err().kind(), ErrorKind::Shape);
    }

    #[test]
    fn bounds_count_one_rounding_for_the_product_and_one_for_the_sum() {
        let u = 2f64.powi(-23);
        let of = |alpha, x: f32, y: f32| axpy_bound(alpha, &[x], &[y]).unwrap()[0];
        assert_eq!(of(0.5, 3.0, 0.25), 0.0);
        let third = f64::from(1.0f32 / 3.0);
        assert_eq!(of(third, 3.0, 0.0), 2.0 * u);
        assert_eq!(of(1.0, 1e-10, 1.0), u);
        assert_eq!(of(3e38, 3e38, -1.0), f64::INFINITY);
        assert_eq!(axpy_bound(-3.0, &[2], &[1]).unwrap(), [0.0]);
    }
}
