//! The product of a sparse and a dense matrix, column by column as that of a vector.

use super::judge::{Wanted, descriptor, input, output_shape, unrounded};
use super::spconvert::matrix;
use super::spmv::scalars;
use super::{spmv, spmv_bound};
use crate::error::{Result, err};
use crate::program::OpCall;
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
/// [`Shape`](crate::ErrorKind::Shape): `b` or `c` has another length than A columns or rows, times `n`.
pub fn spmm(alpha: f32, a: &Csr, b: &[f32], n: usize, beta: f32, c: &[f32]) -> Result<Vec<f64>> {
    by_columns(a, b, n, c, |x, y| spmv(alpha, a, x, beta, y))
}

/// Bounds the error of each element, as [`spmv_bound`].
///
/// # Errors
/// As [`spmm`].
pub fn spmm_bound(alpha: f32, a: &Csr, b: &[f32], n: usize, beta: f32, c: &[f32]) -> Result<Vec<f64>> {
    by_columns(a, b, n, c, |x, y| spmv_bound(alpha, a, x, beta, y))
}

/// Applies `product` to each column of `b` and `c`.
fn by_columns(
    a: &Csr,
    b: &[f32],
    n: usize,
    c: &[f32],
    product: impl Fn(&[f32], &[f32]) -> Result<Vec<f64>>,
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
mod tests {
    use super::*;

    #[test]
    fn product_of_2x3_and_3x2_is_known() {
        // (1 0 2; 0 3 0)
        let (row_ptrs, col_idxs, values) = (vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
        let a = Csr { rows: 2, cols: 3, row_ptrs, col_idxs, values };
        let b = [1.0, 2.0, 10.0, 20.0, 100.0, 200.0];
        assert_eq!(spmm(1.0, &a, &b, 2, 0.0, &[f32::NAN; 4]).unwrap(), [201.0, 402.0, 30.0, 60.0]);
        assert_eq!(spmm(2.0, &a, &b, 2, -1.0, &[1.0; 4]).unwrap(), [401.0, 803.0, 59.0, 119.0]);
        assert!(spmm(1.0, &a, &b[..5], 2, 0.0, &[0.0; 4]).is_err());
        let bound = spmm_bound(1.0, &a, &b, 2, 0.0, &[0.0; 4]).unwrap();
        assert!(bound[1] == 2.0 * bound[0] || (bound[1] / bound[0] - 2.0).abs() < 1e-6, "{bound:?}");
    }
}
