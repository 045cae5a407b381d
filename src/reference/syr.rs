use super::prelude::*;
use super::syr2::{update, update_bound};
use crate::dense::Syr;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, x, a) = (descriptor::<Syr>(call)?, input(call, 0)?, input(call, 1)?);
    let (want, bound) = (syr(op, x, a), syr_bound(op, x, a));
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

/// Returns the stored elements of the matrix after `op` in `f64`, not rounded.
pub fn syr(op: &Syr, x: &[f32], a: &[f32]) -> Vec<f64> {
    update(&op.half, op.alpha / 2.0, [x, x], a)
}

/// Bounds the errors in f32. Nothing is promised where a product overflows.
pub fn syr_bound(op: &Syr, x: &[f32], a: &[f32]) -> Vec<f64> {
    update_bound(&op.half, op.alpha / 2.0, [x, x], a)
}

#[cfg(test)]
#[path = "tests/syr.rs"]
mod tests;
