use super::prelude::*;
use super::symv::whole;
use super::{gemv, gemv_bound};
use crate::dense::{Gbmv, Gemv};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, x) = (descriptor::<Gbmv>(call)?, input(call, 0)?, input(call, 1)?);
    let shape = output_shape(call, 0);
    let y = optional_input::<f32>(call, 2)?.map_or(vec![0.0; shape.iter().product()], <[f32]>::to_vec);
    let (want, bound) = (gbmv(op, a, x, &y)?, gbmv_bound(op, a, x, &y)?);
    Ok(vec![Wanted::rounded(DType::F32, &shape, &want, &bound)?])
}

fn product(op: &Gbmv, a: &[f32]) -> (Gemv, Vec<f32>) {
    let product = Gemv::new(op.matrix.rows, op.matrix.cols).when(op.trans, Gemv::trans);
    (product.alpha(op.alpha).beta(op.beta), whole(&op.matrix, a, false, false))
}

/// Computes `y` after `op` in `f64`, not rounded.
pub fn gbmv(op: &Gbmv, a: &[f32], x: &[f32], y: &[f32]) -> Result<Vec<f64>> {
    let (product, a) = product(op, a);
    gemv(&product, &a, x, y)
}

/// Returns the error bound of each element: [`gemv_bound`].
pub fn gbmv_bound(op: &Gbmv, a: &[f32], x: &[f32], y: &[f32]) -> Result<Vec<f64>> {
    let (product, a) = product(op, a);
    gemv_bound(&product, &a, x, y)
}

#[cfg(test)]
#[path = "tests/gbmv.rs"]
mod tests;
