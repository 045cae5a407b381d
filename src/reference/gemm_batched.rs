use super::gemm::{ProductOperands, may_run_on_matrices, on_matrices, with_scalars};
use super::prelude::*;
use super::{gemm, gemm_bound};
use crate::dense::{BatchLayout, DenseLayout, Gemm, GemmBatched, Product};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    fn of<T: Number + Into<f64>, R: Number + Into<f64>>(call: &OpCall, op: &GemmBatched) -> Result<Vec<Wanted>> {
        let ProductOperands { a, b, bias, c } = ProductOperands::<T, R>::of(call, &op.product)?;
        let want = gemm_batched(op, a, b, bias, &c)?;
        let bound = if may_run_on_matrices(&op.product, T::DTYPE) {
            each_matrix(op, a, b, &c, vec![0.0; c.len()], |one, a, b, c| {
                on_matrices(one, a, b, &gemm(one, a, b, bias, c)?, &gemm_bound(one, a, b, bias, c)?)
            })?
        } else {
            gemm_batched_bound(op, a, b, bias, &c)?
        };
        Ok(vec![Wanted::rounded(R::DTYPE, &output_shape(call, 0), &want, &bound)?])
    }
    let op = &GemmBatched { product: with_scalars(call, &descriptor::<GemmBatched>(call)?.product)? };
    by_input!(call, 0, [f32, f16], T => {
        if op.product.mixed { of::<T, f32>(call, op) } else { of::<T, T>(call, op) }
    })
}

/// Computes `c` after `op`: `activation(alpha op(A[b]) op(B[b]) + beta C[b] + bias)` for every b, not rounded to
/// `R`.
///
/// `c` holds its old contents; elements between its rows and matrices are returned unchanged. `bias` has an element
/// for each column of C, or for each row with [`GemmBatched::with_row_bias`]. Factors and result may differ in
/// type, as with [`GemmBatched::mixed_precision`].
///
/// # Errors
/// [`Shape`](ErrorKind::Shape): an operand is shorter than `op` needs; those of `op` for its strides.
pub fn gemm_batched<T: Element + Into<f64>, R: Element + Into<f64>>(
    op: &GemmBatched, a: &[T], b: &[T], bias: Option<&[R]>, c: &[R],
) -> Result<Vec<f64>> {
    let before = c.iter().map(|&x| x.into()).collect();
    each_matrix(op, a, b, c, before, |one, a, b, c| gemm(one, a, b, bias, c))
}

/// Bounds the difference from [`gemm_batched`] of each element of `c`: [`gemm_bound`] for every matrix, 0 between
/// rows and matrices.
pub fn gemm_batched_bound<T: Element + Into<f64>, R: Element + Into<f64>>(
    op: &GemmBatched, a: &[T], b: &[T], bias: Option<&[R]>, c: &[R],
) -> Result<Vec<f64>> {
    each_matrix(op, a, b, c, vec![0.0; c.len()], |one, a, b, c| gemm_bound(one, a, b, bias, c))
}

fn each_matrix<T, R>(
    op: &GemmBatched, a: &[T], b: &[T], c: &[R], mut out: Vec<f64>,
    result: impl Fn(&Gemm, &[T], &[T], &[R]) -> Result<Vec<f64>>,
) -> Result<Vec<f64>> {
    let product = &op.product;
    let one = Gemm { product: Product { batched: false, batch: 1, strides: Some([0; 3]), ..product.clone() } };
    let layouts = product.layouts(&product.name())?;
    let part = |name, of: usize, matrix: usize| {
        let BatchLayout { span, stride, .. } = layouts[of];
        let from = if span == 0 { 0 } else { matrix * stride };
        let len = [a.len(), b.len(), c.len()][of];
        if from + span <= len {
            return Ok(from..from + span);
        }
        Err(err!(
            Shape,
            "reference gemm-batched: {name} has {len} elements; matrix {matrix} of {span} begins at {from}"
        ))
    };
    let DenseLayout { cols, ld, .. } = layouts[2].at;
    for matrix in 0..product.batch {
        let (at_a, at_b, at_c) = (part("a", 0, matrix)?, part("b", 1, matrix)?, part("c", 2, matrix)?);
        let computed = result(&one, &a[at_a], &b[at_b], &c[at_c.clone()])?;
        // Elements between its rows may belong to other matrices.
        for (to, row) in out[at_c].chunks_mut(ld.max(1)).zip(computed.chunks(ld.max(1))) {
            to[..cols].copy_from_slice(&row[..cols]);
        }
    }
    Ok(out)
}

#[cfg(test)]
#[path = "tests/gemm_batched.rs"]
mod tests;
