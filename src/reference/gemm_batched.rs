//! The batched product, one matrix after the other in f64.

use super::Number;
use super::gemm::{ProductOperands, may_run_on_matrices, on_matrices, with_scalars};
use super::judge::{Wanted, by_input, descriptor, output_shape};
use super::{gemm, gemm_bound};
use crate::dense::{BatchLayout, DenseLayout, Gemm, GemmBatched, Product};
use crate::element::Element;
use crate::error::{Result, err};
use crate::program::OpCall;
use half::f16;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    fn of<T: Number + Into<f64>, R: Number + Into<f64>>(
        call: &OpCall,
        op: &GemmBatched,
    ) -> Result<Vec<Wanted>> {
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
/// [`Shape`](crate::ErrorKind::Shape): an operand is shorter than `op` needs; those of `op` for its strides.
pub fn gemm_batched<T: Element + Into<f64>, R: Element + Into<f64>>(
    op: &GemmBatched,
    a: &[T],
    b: &[T],
    bias: Option<&[R]>,
    c: &[R],
) -> Result<Vec<f64>> {
    let before = c.iter().map(|&x| x.into()).collect();
    each_matrix(op, a, b, c, before, |one, a, b, c| gemm(one, a, b, bias, c))
}

/// Bounds the difference from [`gemm_batched`] of each element of `c`: [`gemm_bound`] for every matrix, 0 between
/// rows and matrices.
///
/// # Errors
/// As [`gemm_batched`].
pub fn gemm_batched_bound<T: Element + Into<f64>, R: Element + Into<f64>>(
    op: &GemmBatched,
    a: &[T],
    b: &[T],
    bias: Option<&[R]>,
    c: &[R],
) -> Result<Vec<f64>> {
    each_matrix(op, a, b, c, vec![0.0; c.len()], |one, a, b, c| gemm_bound(one, a, b, bias, c))
}

fn each_matrix<T, R>(
    op: &GemmBatched,
    a: &[T],
    b: &[T],
    c: &[R],
    mut out: Vec<f64>,
    result: impl Fn(&Gemm, &[T], &[T], &[R]) -> Result<Vec<f64>>,
) -> Result<Vec<f64>> {
    let product = &op.product;
    let one =
        Gemm { product: Product { batched: false, batch: 1, strides: Some([0; 3]), ..product.clone() } };
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
mod tests {
    use super::*;

    #[test]
    fn products_of_two_pairs_are_known() {
        // (1 2; 3 4) (1 0; 0 1) and (5 6; 7 8) (0 1; 1 0).
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0f32];
        let b = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0f32];
        let op = GemmBatched::new(2, 2, 2, 2);
        let got = gemm_batched(&op, &a, &b, None, &[0.0; 8]).unwrap();
        assert_eq!(got, [1.0, 2.0, 3.0, 4.0, 6.0, 5.0, 8.0, 7.0]);
        let both = op.clone().trans_a().alpha(2.0).beta(1.0);
        let got = gemm_batched(&both, &a, &b, None, &[1.0; 8]).unwrap();
        assert_eq!(got, [3.0, 7.0, 5.0, 9.0, 15.0, 11.0, 17.0, 13.0]);
        let rows = op.clone().with_row_bias();
        let got = gemm_batched(&rows, &a, &b, Some(&[0.0, 10.0]), &[0.0; 8]).unwrap();
        assert_eq!(got, [1.0, 2.0, 13.0, 14.0, 6.0, 5.0, 18.0, 17.0]);
        assert!(gemm_batched(&op, &a[..7], &b, None, &[0.0; 8]).is_err());
    }

    #[test]
    fn strides_repeat_and_skip() {
        let op = GemmBatched::new(3, 1, 1, 1).strides(0, 2, 3);
        let got = gemm_batched(&op, &[2.0f32], &[1.0, 9.0, 2.0, 9.0, 3.0], None, &[7.0; 7]).unwrap();
        assert_eq!(got, [2.0, 7.0, 7.0, 4.0, 7.0, 7.0, 6.0]);
        let bound = gemm_batched_bound(&op, &[2.0f32], &[1.0, 9.0, 2.0, 9.0, 3.0], None, &[7.0; 7]).unwrap();
        assert!(bound[0] > 0.0 && bound[1] == 0.0 && bound[6] > 0.0);
        assert!(
            gemm_batched(
                &GemmBatched::new(2, 1, 1, 1).strides(1, 1, 0),
                &[1.0f32; 2],
                &[1.0; 2],
                None,
                &[0.0; 2]
            )
            .is_err()
        );
    }

    #[test]
    fn matrices_side_by_side_stay_apart() {
        // Columns of one matrix times single numbers.
        let op = GemmBatched::new(2, 2, 1, 1).lda(2).ldc(3).strides(1, 1, 1);
        let got = gemm_batched(&op, &[1.0f32, 2.0, 3.0, 4.0], &[10.0, 100.0], None, &[7.0; 5]).unwrap();
        assert_eq!(got, [10.0, 200.0, 7.0, 30.0, 400.0]);
        let bound =
            gemm_batched_bound(&op, &[1.0f32, 2.0, 3.0, 4.0], &[10.0, 100.0], None, &[7.0; 5]).unwrap();
        assert_eq!(bound.iter().map(|b| *b > 0.0).collect::<Vec<_>>(), [true, true, false, true, true]);
    }

    #[test]
    fn an_empty_batch_leaves_c_and_an_empty_k_scales_it() {
        assert_eq!(
            gemm_batched::<f32, f32>(&GemmBatched::new(0, 2, 2, 2), &[], &[], None, &[]).unwrap(),
            [0.0; 0]
        );
        let op = GemmBatched::new(2, 1, 1, 0).beta(3.0);
        assert_eq!(gemm_batched::<f32, _>(&op, &[], &[], None, &[1.0f32, 2.0]).unwrap(), [3.0, 6.0]);
    }
}
