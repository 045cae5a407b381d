use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/scal.rs"]
mod tests;
