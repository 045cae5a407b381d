use super::prelude::*;

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

#[cfg(test)]
#[path = "tests/axpy.rs"]
mod tests;
