use super::prelude::*;
use super::{gemm, gemm_bound};
use crate::dense::{Gemm, Symm};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, b) = (descriptor::<Symm>(call)?, input::<f32>(call, 0)?, input::<f32>(call, 1)?);
    let shape = output_shape(call, 0);
    let c = optional_input::<f32>(call, 2)?.map_or(vec![0.0; shape.iter().product()], <[f32]>::to_vec);
    let (want, bound) = (symm(op, a, b, &c)?, symm_bound(op, a, b, &c)?);
    Ok(vec![Wanted::rounded(DType::F32, &shape, &want, &bound)?])
}

/// Calls `of` with the factors in order.
fn whole<R>(op: &Symm, a: &[f32], b: &[f32], of: impl FnOnce(&[f32], &[f32]) -> R) -> R {
    let n = op.triangle.side();
    let element = |i: usize| {
        let (row, column) = (i / n, i % n);
        op.triangle.at(row, column).or(op.triangle.at(column, row)).map_or(0.0, |at| a[at])
    };
    let elements = if op.alpha == 0.0 || op.triangle.others() == 0 { 0 } else { n * n };
    let whole: Vec<f32> = (0..n * n).map(|i| if elements > 0 { element(i) } else { 0.0 }).collect();
    if op.triangle.right { of(b, &whole) } else { of(&whole, b) }
}

/// Returns C in `f64`, not rounded, with the elements of `c` between its rows.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape): `b` or `c` is too short.
pub fn symm(op: &Symm, a: &[f32], b: &[f32], c: &[f32]) -> Result<Vec<f64>> {
    whole(op, a, b, |a, b| gemm(&Gemm { product: op.product() }, a, b, None, c))
}

/// Returns the error bound of each element, computed in f32.
pub fn symm_bound(op: &Symm, a: &[f32], b: &[f32], c: &[f32]) -> Result<Vec<f64>> {
    whole(op, a, b, |a, b| gemm_bound(&Gemm { product: op.product() }, a, b, None, c))
}

#[cfg(test)]
#[path = "tests/symm.rs"]
mod tests;
