use super::prelude::*;
use super::reduce_bound;
use crate::primitives::Operator;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/asum.rs"]
mod tests;
