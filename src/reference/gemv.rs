//! The matrix-vector product: a matrix product with one column.

use super::gemm::ProductOperands;
use super::gemm::{gemm, gemm_bound, with_scalars};
use super::judge::{Wanted, by_input, descriptor, output_shape};
use crate::dense::{DenseLayout, Gemm, Gemv, Product};
use crate::element::Element;
use crate::error::Result;
use crate::program::OpCall;
use crate::program::When;
use half::f16;

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
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape): an operand is shorter than `op` needs.
pub fn gemv<T: Element + Into<f64>>(op: &Gemv, a: &[T], x: &[T], y: &[T]) -> Result<Vec<f64>> {
    gemm(&product(op), a, x, None, y)
}

/// Bounds the difference from [`gemv`] of each element of `y` after `op` ran in f32 and rounded to `T`:
/// [`gemm_bound`], which holds for every order of a sum.
///
/// # Errors
/// As [`gemv`].
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
mod tests {
    use super::*;

    /// (1 2 3; 4 5 6), with an element between the rows.
    const A: [f32; 7] = [1.0, 2.0, 3.0, -9.0, 4.0, 5.0, 6.0];

    #[test]
    fn product_of_2x3_is_known_both_ways() {
        let op = Gemv::new(2, 3).lda(4);
        assert_eq!(gemv(&op, &A, &[1.0, 10.0, 100.0], &[0.0; 2]).unwrap(), [321.0, 654.0]);
        let trans = op.trans();
        assert_eq!(gemv(&trans, &A, &[1.0, 10.0], &[0.0; 3]).unwrap(), [41.0, 52.0, 63.0]);
        assert!(gemv(&trans, &A[..6], &[1.0, 10.0], &[0.0; 3]).is_err());
    }

    #[test]
    fn alpha_and_beta_follow_the_formula_and_0_hides() {
        let op = Gemv::new(2, 3).lda(4).alpha(2.0).beta(-1.0);
        assert_eq!(gemv(&op, &A, &[1.0, 1.0, 1.0], &[10.0, 20.0]).unwrap(), [2.0, 10.0]);
        let nan = [f32::NAN; 7];
        assert_eq!(gemv(&op.alpha(0.0), &nan, &nan[..3], &[10.0, 20.0]).unwrap(), [-10.0, -20.0]);
        let op = Gemv::new(2, 3).lda(4);
        assert_eq!(gemv(&op, &A, &[1.0, 0.0, 0.0], &nan[..2]).unwrap(), [1.0, 4.0]);
    }

    #[test]
    fn bound_covers_the_same_sum_in_f32() {
        let n = 1000;
        let a: Vec<f32> = (0..n).map(|i| (i as f32 * 0.37).sin()).collect();
        let x: Vec<f32> = (0..n).map(|i| (i as f32 * 0.91).cos()).collect();
        let single: f32 = a.iter().zip(&x).map(|(a, x)| a * x).sum();
        let op = Gemv::new(1, n);
        let exact = gemv(&op, &a, &x, &[0.0]).unwrap()[0];
        let bound = gemv_bound(&op, &a, &x, &[0.0]).unwrap()[0];
        assert!((f64::from(single) - exact).abs() <= bound && bound < 0.05, "{single} {exact} {bound}");
    }
}
