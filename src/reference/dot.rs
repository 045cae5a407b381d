use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let (x, y) = (input::<T>(call, 0)?, input::<T>(call, 1)?);
        let there = there(call, x.len())?;
        let (x, y) = (&x[..there], &y[..there]);
        Ok(vec![Wanted::rounded(T::DTYPE, &[], &[dot(x, y)], &[dot_bound(x, y)])?])
    })
}

/// Multiplies two vectors to a scalar: floats in `f64` and not rounded, integers exactly and wrapped to 32 bits.
pub fn dot<T: Number>(x: &[T], y: &[T]) -> f64 {
    let pairs = x.iter().zip(y).map(|(x, y)| (x.to_f64(), y.to_f64()));
    if T::DTYPE.is_float() {
        return pairs.map(|(x, y)| x * y).sum();
    }
    let wrapped = pairs.fold(0i64, |sum, (x, y)| (sum + (x as i64).wrapping_mul(y as i64)) & 0xffff_ffff);
    if T::DTYPE == DType::I32 { f64::from(wrapped as u32 as i32) } else { wrapped as f64 }
}

/// Returns the error bound of [`dot`] in f32, in a tree; 0 for integers.
pub fn dot_bound<T: Number>(x: &[T], y: &[T]) -> f64 {
    if !T::DTYPE.is_float() {
        return 0.0;
    }
    let n = x.len() as f64;
    let sizes: f64 = x.iter().zip(y).map(|(x, y)| (x.to_f64() * y.to_f64()).abs()).sum();
    let depth = n.min(64.0 + n.max(1.0).log2() + n / 8192.0) + 1.0;
    let half_step = if T::DTYPE == DType::F16 { 2f64.powi(-11) } else { 0.0 };
    (2.0 * depth * 2f64.powi(-24) + half_step) * sizes + n * f64::from(f32::MIN_POSITIVE)
}

#[cfg(test)]
#[path = "tests/dot.rs"]
mod tests;
