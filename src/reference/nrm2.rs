use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16], T => {
        let x = input::<T>(call, 0)?;
        let x = &x[..there(call, x.len())?];
        Ok(vec![Wanted::rounded(T::DTYPE, &[], &[nrm2(x)], &[nrm2_bound(x)])?])
    })
}

/// Computes the Euclidean norm in `f64`, not rounded: the squares of f32 do not overflow there.
pub fn nrm2<T: Number>(x: &[T]) -> f64 {
    x.iter().map(|x| x.to_f64() * x.to_f64()).sum::<f64>().sqrt()
}

/// Returns the error bound of [`nrm2`] in f32, in a tree; subnormal numbers may be taken for 0.
pub fn nrm2_bound<T: Number>(x: &[T]) -> f64 {
    let (n, norm) = (x.len() as f64, nrm2(x));
    let depth = n.min(64.0 + n.max(1.0).log2() + n / 8192.0) + 16.0;
    let half_step = if T::DTYPE == DType::F16 { 2f64.powi(-11) } else { 0.0 };
    let bound = (depth * 2f64.powi(-24) + half_step) * norm + n.sqrt() * f64::from(f32::MIN_POSITIVE);
    if norm.is_finite() { bound } else { 0.0 }
}

#[cfg(test)]
#[path = "tests/nrm2.rs"]
mod tests;
