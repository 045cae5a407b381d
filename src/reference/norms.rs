use super::prelude::*;
use super::{reduce, reduce_bound};
use crate::primitives::Operator;

judges! { dot => judge_dot, nrm2 => judge_nrm2, asum => judge_asum, iamax => judge_iamax, iamin => judge_iamin }

fn judge_dot(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_nrm2(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_asum(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16], T => {
        let x = input::<T>(call, 0)?;
        let x = &x[..there(call, x.len())?];
        Ok(vec![Wanted::rounded(T::DTYPE, &[], &[asum(x)], &[asum_bound(x)])?])
    })
}

pub(super) fn magnitudes<T: Number>(x: &[T]) -> Vec<T> {
    x.iter().map(|x| T::from_f64(x.to_f64().abs())).collect()
}

/// Sums magnitudes in `f64`, not rounded.
pub fn asum<T: Number>(x: &[T]) -> f64 {
    x.iter().map(|x| x.to_f64().abs()).sum()
}

/// Returns the error bound of [`asum`] in f32, in a tree.
pub fn asum_bound<T: Number>(x: &[T]) -> f64 {
    reduce_bound(&Operator::Sum, 1, x.len(), &magnitudes(x))[0]
}

fn judge_iamax(call: &OpCall) -> Result<Vec<Wanted>> {
    judge_place(call, &Operator::ArgMax)
}

fn judge_place(call: &OpCall, operator: &Operator) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16], T => {
        let x = input::<T>(call, 0)?;
        let x = &x[..there(call, x.len())?];
        // Of nothing, any number.
        let bound = x.is_empty().then(|| vec![f64::INFINITY]);
        Ok(vec![Wanted { bound, ..Wanted::exact(&[], vec![place(operator, x)])? }])
    })
}

fn place<T: Number>(operator: &Operator, x: &[T]) -> u32 {
    reduce(operator, 1, x.len(), &magnitudes(x)).map_or(0, |at| at[0] as u32)
}

/// Finds the first position of the largest magnitude, or of the first NaN; 0 for no elements.
pub fn iamax<T: Number>(x: &[T]) -> u32 {
    place(&Operator::ArgMax, x)
}

fn judge_iamin(call: &OpCall) -> Result<Vec<Wanted>> {
    judge_place(call, &Operator::ArgMin)
}

/// Finds the first position of the smallest magnitude, or of the first NaN; 0 for no elements.
pub fn iamin<T: Number>(x: &[T]) -> u32 {
    place(&Operator::ArgMin, x)
}

#[cfg(test)]
#[path = "tests/norms.rs"]
mod tests;
