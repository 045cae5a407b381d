use super::prelude::*;
use super::{gemv, gemv_bound};
use crate::dense::{BandMatrix, Gemv, Symv};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, x) = (descriptor::<Symv>(call)?, input(call, 0)?, input(call, 1)?);
    let y = optional_input::<f32>(call, 2)?.map_or(vec![0.0; x.len()], <[f32]>::to_vec);
    let (want, bound) = (symv(op, a, x, &y)?, symv_bound(op, a, x, &y)?);
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

/// All elements of a matrix, row by row, from those that are stored.
pub(super) fn whole(matrix: &BandMatrix, a: &[f32], symmetric: bool, unit: bool) -> Vec<f32> {
    let element = |p: usize, q: usize| match matrix.at(p, q) {
        Some(_) if unit && p == q => 1.0,
        Some(at) => a[at],
        None if symmetric => matrix.at(q, p).map_or(0.0, |at| a[at]),
        None => 0.0,
    };
    (0..matrix.rows).flat_map(|p| (0..matrix.cols).map(move |q| element(p, q))).collect()
}

/// The product with the whole matrix, and that matrix.
fn product(op: &Symv, a: &[f32]) -> (Gemv, Vec<f32>) {
    let whole = whole(&op.half.matrix(), a, true, false);
    (Gemv::new(op.half.n, op.half.n).alpha(op.alpha).beta(op.beta), whole)
}

/// Computes `y` after `op` in `f64`, not rounded.
pub fn symv(op: &Symv, a: &[f32], x: &[f32], y: &[f32]) -> Result<Vec<f64>> {
    let (product, a) = product(op, a);
    gemv(&product, &a, x, y)
}

/// Returns the error bound of each element: [`gemv_bound`].
pub fn symv_bound(op: &Symv, a: &[f32], x: &[f32], y: &[f32]) -> Result<Vec<f64>> {
    let (product, a) = product(op, a);
    gemv_bound(&product, &a, x, y)
}

#[cfg(test)]
#[path = "tests/symv.rs"]
mod tests;
