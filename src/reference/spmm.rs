use super::prelude::*;
use super::spconvert::matrix;
use super::spmv::scalars;
use super::{spmv, spmv_bound};
use crate::sparse::{Csr, Spmm};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Spmm>(call)?;
    let a = matrix(call, &op.matrix)?.0;
    let last = call.inputs().count().saturating_sub(1);
    let (alpha, beta) = scalars(call, op.scalars, op.alpha, op.beta)?;
    let b = input(call, last.saturating_sub(1 + usize::from(op.scalars)))?;
    let (a, c) = (a.to_csr()?, input(call, last)?);
    let want = spmm(alpha, &a, b, op.n, beta, c)?;
    let bound = spmm_bound(alpha, &a, b, op.n, beta, c)?;
    Ok(vec![unrounded(&output_shape(call, 0), &want, &bound)?])
}

/// Computes `alpha A B + beta C`, not rounded; B and C have `n` columns.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape): `b` or `c` has another length than A columns or rows, times `n`.
pub fn spmm(alpha: f32, a: &Csr, b: &[f32], n: usize, beta: f32, c: &[f32]) -> Result<Vec<f64>> {
    by_columns(a, b, n, c, |x, y| spmv(alpha, a, x, beta, y))
}

/// Bounds the error of each element, as [`spmv_bound`].
pub fn spmm_bound(alpha: f32, a: &Csr, b: &[f32], n: usize, beta: f32, c: &[f32]) -> Result<Vec<f64>> {
    by_columns(a, b, n, c, |x, y| spmv_bound(alpha, a, x, beta, y))
}

/// Applies `product` to each column of `b` and `c`.
fn by_columns(
    a: &Csr, b: &[f32], n: usize, c: &[f32], product: impl Fn(&[f32], &[f32]) -> Result<Vec<f64>>,
) -> Result<Vec<f64>> {
    let Csr { rows, cols, .. } = *a;
    if b.len() != cols * n || c.len() != rows * n {
        return Err(err!(
            Shape,
            "reference spmm: A is {rows} x {cols}, b of {n} columns has {} elements and c {}",
            b.len(),
            c.len()
        ));
    }
    let column = |list: &[f32], j: usize| list.iter().copied().skip(j).step_by(n).collect::<Vec<_>>();
    let mut out = vec![0.0; rows * n];
    for j in 0..n {
        for (row, value) in product(&column(b, j), &column(c, j))?.into_iter().enumerate() {
            out[row * n + j] = value;
        }
    }
    Ok(out)
}

#[cfg(test)]
#[path = "tests/spmm.rs"]
mod tests;
