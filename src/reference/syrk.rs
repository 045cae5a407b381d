use super::prelude::*;
use super::{gemm, gemm_bound};
use crate::dense::{Gemm, Syrk};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, c) = (descriptor::<Syrk>(call)?, input::<f32>(call, 0)?, input::<f32>(call, 1)?);
    let (want, bound) = (syrk(op, a, c)?, syrk_bound(op, a, c)?);
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

/// Takes the elements of a triangle of an `n` x `n` matrix from the product, and others from `rest`. `full` takes all,
/// `upper` the upper triangle.
pub(super) fn triangle(
    ld: usize, n: usize, [full, upper]: [bool; 2], product: &[f64], rest: impl Fn(usize) -> f64,
) -> Vec<f64> {
    let written = |i: usize| {
        let (row, column) = (i / ld.max(1), i % ld.max(1));
        let asked = full || if upper { row <= column } else { column <= row };
        row < n && column < n && asked
    };
    product.iter().enumerate().map(|(i, x)| if written(i) { *x } else { rest(i) }).collect()
}

/// Returns C in `f64`, not rounded; elements outside of the triangle are those of `c`.
pub fn syrk(op: &Syrk, a: &[f32], c: &[f32]) -> Result<Vec<f64>> {
    let product = gemm(&Gemm { product: op.product() }, a, a, None, c)?;
    Ok(triangle(op.product().layout_c().ld, op.update.n, [op.update.full, op.update.upper], &product, |i| c[i].into()))
}

/// Returns the error bound of each element, computed in f32: 0 outside of the triangle.
pub fn syrk_bound(op: &Syrk, a: &[f32], c: &[f32]) -> Result<Vec<f64>> {
    let bound = gemm_bound(&Gemm { product: op.product() }, a, a, None, c)?;
    Ok(triangle(op.product().layout_c().ld, op.update.n, [op.update.full, op.update.upper], &bound, |_| 0.0))
}

#[cfg(test)]
#[path = "tests/syrk.rs"]
mod tests;
