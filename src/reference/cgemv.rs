use super::cgemm::product;
use super::prelude::*;
use super::{cgemm, cgemm_bound};
use crate::dense::Cgemv;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    product(call, &descriptor::<Cgemv>(call)?.as_cgemm())
}

/// Computes `y` after `op`, real and imaginary parts in turn, not rounded.
pub fn cgemv(op: &Cgemv, a: &[f32], x: &[f32], y: &[f32]) -> Vec<f64> {
    cgemm(&op.as_cgemm(), a, x, y)
}

/// Bounds the error of each part in f32, for every order of the sums.
pub fn cgemv_bound(op: &Cgemv, a: &[f32], x: &[f32], y: &[f32]) -> Vec<f64> {
    cgemm_bound(&op.as_cgemm(), a, x, y)
}

#[cfg(test)]
#[path = "tests/cgemv.rs"]
mod tests;
