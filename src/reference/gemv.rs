use super::gemm::ProductOperands;
use super::gemm::{gemm, gemm_bound, with_scalars};
use super::prelude::*;
use crate::dense::{DenseLayout, Gemm, Gemv, Product};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Gemv>(call)?;
    let of_one_column = Product { scalars: op.scalars, ..product(op).product };
    let gemm_op = Gemm { product: with_scalars(call, &of_one_column)? };
    by_input!(call, 0, [f32, f16], T => {
        let ProductOperands { a, b: x, c: y, .. } = ProductOperands::<T, T>::of(call, &gemm_op.product)?;
        let (want, bound) = (gemm(&gemm_op, a, x, None, &y)?, gemm_bound(&gemm_op, a, x, None, &y)?);
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &want, &bound)?])
    })
}

/// Computes `y` after `op`: `alpha op(A) x + beta y`, not rounded to `T`.
pub fn gemv<T: Element + Into<f64>>(op: &Gemv, a: &[T], x: &[T], y: &[T]) -> Result<Vec<f64>> {
    gemm(&product(op), a, x, None, y)
}

/// Bounds the difference from [`gemv`] of each element of `y` after `op` ran in f32 and rounded to `T`:
/// [`gemm_bound`], which holds for every order of a sum.
pub fn gemv_bound<T: Element + Into<f64>>(op: &Gemv, a: &[T], x: &[T], y: &[T]) -> Result<Vec<f64>> {
    gemm_bound(&product(op), a, x, None, y)
}

/// The same product with `x` and `y` as matrices of one column.
fn product(op: &Gemv) -> Gemm {
    let (x_len, y_len) = op.lengths();
    let DenseLayout { ld, .. } = op.layout();
    Gemm::new(y_len, 1, x_len).when(op.trans, |op| op.trans_a()).lda(ld).alpha(op.alpha).beta(op.beta)
}

#[cfg(test)]
#[path = "tests/gemv.rs"]
mod tests;
