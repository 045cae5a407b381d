use super::prelude::*;
use super::symv::whole;
use super::{gemv, gemv_bound};
use crate::dense::{Gemv, Trmv};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, x) = (descriptor::<Trmv>(call)?, input(call, 0)?, input(call, 1)?);
    let (want, bound) = (trmv(op, a, x)?, trmv_bound(op, a, x)?);
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

fn product(op: &Trmv, a: &[f32]) -> (Gemv, Vec<f32>) {
    let whole = whole(&op.half.matrix(), a, false, op.unit);
    (Gemv::new(op.half.n, op.half.n).when(op.trans, Gemv::trans), whole)
}

/// Computes the product in `f64`, not rounded.
pub fn trmv(op: &Trmv, a: &[f32], x: &[f32]) -> Result<Vec<f64>> {
    let (product, a) = product(op, a);
    gemv(&product, &a, x, &vec![0.0; x.len()])
}

/// Returns the error bound of each element: [`gemv_bound`].
pub fn trmv_bound(op: &Trmv, a: &[f32], x: &[f32]) -> Result<Vec<f64>> {
    let (product, a) = product(op, a);
    gemv_bound(&product, &a, x, &vec![0.0; x.len()])
}

#[cfg(test)]
#[path = "tests/trmv.rs"]
mod tests;
