use super::gemm::{ProductOperands, gemm, gemm_bound, with_scalars};
use super::matrix_matrix::product;
use super::prelude::*;
use super::{cgemm, cgemm_bound, trsm, trsm_bound};
use crate::dense::{
    BandMatrix, Cgemv, DenseLayout, Gbmv, Gemm, Gemv, HalfMatrix, Product, Symv, Syr, Syr2, Trmv, Trsm, Trsv,
};

judges! {
    gemv => judge_gemv, cgemv => judge_cgemv, ger => judge_ger, symv => judge_symv, syr => judge_syr,
    syr2 => judge_syr2, trmv => judge_trmv, trsv => judge_trsv, gbmv => judge_gbmv
}

fn judge_gemv(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Gemv>(call)?;
    let of_one_column = Product { scalars: op.scalars, ..gemv_product(op).product };
    let gemm_op = Gemm { product: with_scalars(call, &of_one_column)? };
    by_input!(call, 0, [f32, f16], T => {
        let ProductOperands { a, b: x, c: y, .. } = ProductOperands::<T, T>::of(call, &gemm_op.product)?;
        let (want, bound) = (gemm(&gemm_op, a, x, None, &y)?, gemm_bound(&gemm_op, a, x, None, &y)?);
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &want, &bound)?])
    })
}

/// Computes `y` after `op`: `alpha op(A) x + beta y`, not rounded to `T`.
pub fn gemv<T: Element + Into<f64>>(op: &Gemv, a: &[T], x: &[T], y: &[T]) -> Result<Vec<f64>> {
    gemm(&gemv_product(op), a, x, None, y)
}

/// Bounds the difference from [`gemv`] of each element of `y` after `op` ran in f32 and rounded to `T`:
/// [`gemm_bound`], which holds for every order of a sum.
pub fn gemv_bound<T: Element + Into<f64>>(op: &Gemv, a: &[T], x: &[T], y: &[T]) -> Result<Vec<f64>> {
    gemm_bound(&gemv_product(op), a, x, None, y)
}

/// The same product with `x` and `y` as matrices of one column.
fn gemv_product(op: &Gemv) -> Gemm {
    let (x_len, y_len) = op.lengths();
    let DenseLayout { ld, .. } = op.layout();
    Gemm::new(y_len, 1, x_len).when(op.trans, |op| op.trans_a()).lda(ld).alpha(op.alpha).beta(op.beta)
}

fn judge_cgemv(call: &OpCall) -> Result<Vec<Wanted>> {
    product(call, &descriptor::<Cgemv>(call)?.as_cgemm())
}

/// Computes `y` after `op`, real and imaginary parts in turn, not rounded.
pub fn cgemv(op: &Cgemv, a: &[f32], x: &[f32], y: &[f32]) -> Vec<f64> {
    cgemm(&op.as_cgemm(), a, x, y)
}

/// Bounds the error of each part in f32, for every order of the sums.
pub fn cgemv_bound(op: &Cgemv, a: &[f32], x: &[f32], y: &[f32]) -> Vec<f64> {
    cgemm_bound(&op.as_cgemm(), a, x, y)
}

fn judge_ger(call: &OpCall) -> Result<Vec<Wanted>> {
    let (alpha, shape) = (option::<f32>(call, "alpha")?, output_shape(call, 0));
    by_input!(call, 0, [f32, f16], T => {
        let (x, y, a) = (input::<T>(call, 0)?, input::<T>(call, 1)?, optional_input::<T>(call, 2)?);
        let (want, bound) = (ger(alpha, x, y, a), ger_bound(alpha, x, y, a));
        Ok(vec![Wanted::rounded(T::DTYPE, &shape, &want, &bound)?])
    })
}

fn terms<T: Number>(alpha: f32, x: &[T], y: &[T], a: Option<&[T]>) -> Vec<[f64; 2]> {
    let outer = x.iter().flat_map(|x| y.iter().map(move |y| f64::from(alpha) * x.to_f64() * y.to_f64()));
    outer.enumerate().map(|(i, product)| [product, a.map_or(0.0, |a| a[i].to_f64())]).collect()
}

/// Returns the matrix in `f64`, not rounded.
pub fn ger<T: Number>(alpha: f32, x: &[T], y: &[T], a: Option<&[T]>) -> Vec<f64> {
    terms(alpha, x, y, a).iter().map(|[product, a]| product + a).collect()
}

/// Returns the error bound of each element, computed in f32. Nothing is promised where a product overflows.
pub fn ger_bound<T: Number>(alpha: f32, x: &[T], y: &[T], a: Option<&[T]>) -> Vec<f64> {
    let half_step = if T::DTYPE == DType::F16 { 2f64.powi(-11) } else { 0.0 };
    let largest = x.iter().chain(y).map(|x| x.to_f64().abs()).fold(0.0, f64::max);
    // Factors that a device takes for 0 change a product by so much.
    let tiny = 4.0 * f64::from(f32::MIN_POSITIVE) * (1.0 + largest) * (1.0 + f64::from(alpha.abs()));
    let of = |[product, a]: &[f64; 2]| {
        let overflows = !f64::from(*product as f32).is_finite() && product.is_finite();
        let size = product.abs() + a.abs();
        if overflows { f64::INFINITY } else { (2f64.powi(-21) + half_step) * size + tiny }
    };
    terms(alpha, x, y, a).iter().map(of).collect()
}

fn judge_symv(call: &OpCall) -> Result<Vec<Wanted>> {
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
fn symv_product(op: &Symv, a: &[f32]) -> (Gemv, Vec<f32>) {
    let whole = whole(&op.half.matrix(), a, true, false);
    (Gemv::new(op.half.n, op.half.n).alpha(op.alpha).beta(op.beta), whole)
}

/// Computes `y` after `op` in `f64`, not rounded.
pub fn symv(op: &Symv, a: &[f32], x: &[f32], y: &[f32]) -> Result<Vec<f64>> {
    let (product, a) = symv_product(op, a);
    gemv(&product, &a, x, y)
}

/// Returns the error bound of each element: [`gemv_bound`].
pub fn symv_bound(op: &Symv, a: &[f32], x: &[f32], y: &[f32]) -> Result<Vec<f64>> {
    let (product, a) = symv_product(op, a);
    gemv_bound(&product, &a, x, y)
}

fn judge_syr(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_syr2(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, x, y, a) = (descriptor::<Syr2>(call)?, input(call, 0)?, input(call, 1)?, input(call, 2)?);
    let (want, bound) = (syr2(op, x, y, a), syr2_bound(op, x, y, a));
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

/// Adds `alpha (x y^T + y x^T)` to the stored elements.
pub(super) fn update(half: &HalfMatrix, alpha: f32, [x, y]: [&[f32]; 2], a: &[f32]) -> Vec<f64> {
    let matrix = half.matrix();
    let mut all: Vec<f64> = a.iter().map(|&a| a.into()).collect();
    let of = |i: usize| [x[i], y[i]].map(f64::from);
    for (i, j) in (0..half.n).flat_map(|i| (0..half.n).map(move |j| (i, j))) {
        if let (Some(at), true) = (matrix.at(i, j), alpha != 0.0) {
            let ([x_i, y_i], [x_j, y_j]) = (of(i), of(j));
            all[at] += f64::from(alpha) * (x_i * y_j + y_i * x_j);
        }
    }
    all
}

/// The error bound of [`update`]: four roundings of terms that all add up.
pub(super) fn update_bound(half: &HalfMatrix, alpha: f32, vectors: [&[f32]; 2], a: &[f32]) -> Vec<f64> {
    let size = |x: &[f32]| x.iter().map(|x| x.abs()).collect::<Vec<_>>();
    let [x, y] = vectors.map(size);
    let largest = f64::from(x.iter().chain(&y).fold(0.0, |largest: f32, x| largest.max(*x)));
    // Factors that a device takes for 0 change a product by so much.
    let tiny = 8.0 * f64::from(f32::MIN_POSITIVE) * (1.0 + largest) * (1.0 + f64::from(alpha.abs()));
    let sizes = update(half, alpha.abs(), [&x, &y], &size(a));
    let overflows = largest * largest > f64::from(f32::MAX) / 4.0;
    let one = |size: f64| {
        let fits = !overflows && size < f64::from(f32::MAX) / 4.0;
        if fits { 2f64.powi(-21) * size + tiny } else { f64::INFINITY }
    };
    sizes.into_iter().map(one).collect()
}

/// Returns the stored elements of the matrix after `op` in `f64`, not rounded.
pub fn syr2(op: &Syr2, x: &[f32], y: &[f32], a: &[f32]) -> Vec<f64> {
    update(&op.half, op.alpha, [x, y], a)
}

/// Bounds the errors in f32. Nothing is promised where a product overflows.
pub fn syr2_bound(op: &Syr2, x: &[f32], y: &[f32], a: &[f32]) -> Vec<f64> {
    update_bound(&op.half, op.alpha, [x, y], a)
}

fn judge_trmv(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, x) = (descriptor::<Trmv>(call)?, input(call, 0)?, input(call, 1)?);
    let (want, bound) = (trmv(op, a, x)?, trmv_bound(op, a, x)?);
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

fn trmv_product(op: &Trmv, a: &[f32]) -> (Gemv, Vec<f32>) {
    let whole = whole(&op.half.matrix(), a, false, op.unit);
    (Gemv::new(op.half.n, op.half.n).when(op.trans, Gemv::trans), whole)
}

/// Computes the product in `f64`, not rounded.
pub fn trmv(op: &Trmv, a: &[f32], x: &[f32]) -> Result<Vec<f64>> {
    let (product, a) = trmv_product(op, a);
    gemv(&product, &a, x, &vec![0.0; x.len()])
}

/// Returns the error bound of each element: [`gemv_bound`].
pub fn trmv_bound(op: &Trmv, a: &[f32], x: &[f32]) -> Result<Vec<f64>> {
    let (product, a) = trmv_product(op, a);
    gemv_bound(&product, &a, x, &vec![0.0; x.len()])
}

fn judge_trsv(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, x) = (descriptor::<Trsv>(call)?, input(call, 0)?, input(call, 1)?);
    let (want, bound) = (trsv(op, a, x), trsv_bound(op, a, x));
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

fn system(op: &Trsv, a: &[f32]) -> (Trsm, Vec<f32>) {
    let like = Trsm::new(op.half.n, 1).when(op.half.upper, Trsm::upper).when(op.trans, Trsm::trans);
    (like, whole(&op.half.matrix(), a, false, op.unit))
}

/// Solves for x in `f64`, not rounded; `b` is the right side.
pub fn trsv(op: &Trsv, a: &[f32], b: &[f32]) -> Vec<f64> {
    let (system, a) = system(op, a);
    trsm(&system, &a, b)
}

/// Returns the error bound of each element: [`trsm_bound`].
pub fn trsv_bound(op: &Trsv, a: &[f32], b: &[f32]) -> Vec<f64> {
    let (system, a) = system(op, a);
    trsm_bound(&system, &a, b)
}

fn judge_gbmv(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, x) = (descriptor::<Gbmv>(call)?, input(call, 0)?, input(call, 1)?);
    let shape = output_shape(call, 0);
    let y = optional_input::<f32>(call, 2)?.map_or(vec![0.0; shape.iter().product()], <[f32]>::to_vec);
    let (want, bound) = (gbmv(op, a, x, &y)?, gbmv_bound(op, a, x, &y)?);
    Ok(vec![Wanted::rounded(DType::F32, &shape, &want, &bound)?])
}

fn gbmv_product(op: &Gbmv, a: &[f32]) -> (Gemv, Vec<f32>) {
    let product = Gemv::new(op.matrix.rows, op.matrix.cols).when(op.trans, Gemv::trans);
    (product.alpha(op.alpha).beta(op.beta), whole(&op.matrix, a, false, false))
}

/// Computes `y` after `op` in `f64`, not rounded.
pub fn gbmv(op: &Gbmv, a: &[f32], x: &[f32], y: &[f32]) -> Result<Vec<f64>> {
    let (product, a) = gbmv_product(op, a);
    gemv(&product, &a, x, y)
}

/// Returns the error bound of each element: [`gemv_bound`].
pub fn gbmv_bound(op: &Gbmv, a: &[f32], x: &[f32], y: &[f32]) -> Result<Vec<f64>> {
    let (product, a) = gbmv_product(op, a);
    gemv_bound(&product, &a, x, y)
}

#[cfg(test)]
#[path = "tests/matrix_vector.rs"]
mod tests;
