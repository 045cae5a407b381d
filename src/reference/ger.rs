use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (alpha, shape) = (option::<f32>(call, "alpha")?, output_shape(call, 0));
    by_input!(call, 0, [f32, f16], T => {
        let (x, y, a) = (input::<T>(call, 0)?, input::<T>(call, 1)?, optional_input::<T>(call, 2)?);
        let (want, bound) = (ger(alpha, x, y, a), ger_bound(alpha, x, y, a));
        Ok(vec![Wanted::rounded(T::DTYPE, &shape, &want, &bound)?])
    })
}

fn terms<T: Number>(alpha: f32, x: &[T], y: &[T], a: Option<&[T]>) -> Vec<[f64; 2]> {
    let outer = x.iter().flat_map(|x| y.iter().map(move |y| f64::from(alpha) * x.to_f64() * y.to_f64()));
    outer.enumerate().map(|(i, product)| [product, a.map_or(0.0, |a| a[i].to_f64())]).collect()
}

/// Returns the matrix in `f64`, not rounded.
pub fn ger<T: Number>(alpha: f32, x: &[T], y: &[T], a: Option<&[T]>) -> Vec<f64> {
    terms(alpha, x, y, a).iter().map(|[product, a]| product + a).collect()
}

/// Returns the error bound of each element, computed in f32. Nothing is promised where a product overflows.
pub fn ger_bound<T: Number>(alpha: f32, x: &[T], y: &[T], a: Option<&[T]>) -> Vec<f64> {
    let half_step = if T::DTYPE == DType::F16 { 2f64.powi(-11) } else { 0.0 };
    let largest = x.iter().chain(y).map(|x| x.to_f64().abs()).fold(0.0, f64::max);
    // Factors that a device takes for 0 change a product by so much.
    let tiny = 4.0 * f64::from(f32::MIN_POSITIVE) * (1.0 + largest) * (1.0 + f64::from(alpha.abs()));
    let of = |[product, a]: &[f64; 2]| {
        let overflows = !f64::from(*product as f32).is_finite() && product.is_finite();
        let size = product.abs() + a.abs();
        if overflows { f64::INFINITY } else { (2f64.powi(-21) + half_step) * size + tiny }
    };
    terms(alpha, x, y, a).iter().map(of).collect()
}

#[cfg(test)]
#[path = "tests/ger.rs"]
mod tests;
