use super::prelude::*;
use super::symv::whole;
use super::{trsm, trsm_bound};
use crate::dense::{Trsm, Trsv};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, x) = (descriptor::<Trsv>(call)?, input(call, 0)?, input(call, 1)?);
    let (want, bound) = (trsv(op, a, x), trsv_bound(op, a, x));
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

fn system(op: &Trsv, a: &[f32]) -> (Trsm, Vec<f32>) {
    let like = Trsm::new(op.half.n, 1).when(op.half.upper, Trsm::upper).when(op.trans, Trsm::trans);
    (like, whole(&op.half.matrix(), a, false, op.unit))
}

/// Solves for x in `f64`, not rounded; `b` is the right side.
pub fn trsv(op: &Trsv, a: &[f32], b: &[f32]) -> Vec<f64> {
    let (system, a) = system(op, a);
    trsm(&system, &a, b)
}

/// Returns the error bound of each element: [`trsm_bound`].
pub fn trsv_bound(op: &Trsv, a: &[f32], b: &[f32]) -> Vec<f64> {
    let (system, a) = system(op, a);
    trsm_bound(&system, &a, b)
}

#[cfg(test)]
#[path = "tests/trsv.rs"]
mod tests;
