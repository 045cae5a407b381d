use super::prelude::*;
use super::spconvert::matrix;
use crate::sparse::{Csr, Spmv};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Spmv>(call)?;
    let a = matrix(call, &op.matrix)?.0;
    let last = call.inputs().count().saturating_sub(1);
    let (alpha, beta) = scalars(call, op.scalars, op.alpha, op.beta)?;
    let x = input(call, last.saturating_sub(1 + usize::from(op.scalars)))?;
    let (a, y) = (a.to_csr()?, input(call, last)?);
    let want = spmv(alpha, &a, x, beta, y)?;
    let bound = spmv_bound(alpha, &a, x, beta, y)?;
    Ok(vec![unrounded(&output_shape(call, 0), &want, &bound)?])
}

/// Returns alpha and beta: those of the operand before the last if it is there.
pub(super) fn scalars(call: &OpCall, given: bool, alpha: f32, beta: f32) -> Result<(f32, f32)> {
    if !given {
        return Ok((alpha, beta));
    }
    match input(call, call.inputs().count().saturating_sub(2))? {
        &[alpha, beta] => Ok((alpha, beta)),
        other => Err(err!(Shape, "reference: {} scalars; there are two, alpha and beta", other.len())),
    }
}

/// Computes `alpha A x + beta y`, not rounded.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape): `x` or `y` has another length than A has columns or rows.
pub fn spmv(alpha: f32, a: &Csr, x: &[f32], beta: f32, y: &[f32]) -> Result<Vec<f64>> {
    Ok(sums(alpha, a, x, beta, y)?.into_iter().map(|sum| sum.value).collect())
}

/// Bounds the error of each element of `y` computed in f32.
///
/// With u = 2^-24 and `gamma(j) = j u / (1 - j u)` (Higham, *Accuracy and Stability of Numerical Algorithms*, section
/// 3.1), a sum of n products in any order, scaled, with a term added, errs by at most
/// `gamma(n + 4) (|alpha| |A| |x| + |beta y|)`, also if terms are scaled before they are added, as with atomics. The
/// bound is infinite if a sum may overflow.
pub fn spmv_bound(alpha: f32, a: &Csr, x: &[f32], beta: f32, y: &[f32]) -> Result<Vec<f64>> {
    let u = 2f64.powi(-24);
    let bound = |(row, sum): (usize, RowSum)| {
        let terms = f64::from(a.row_ptrs[row + 1] - a.row_ptrs[row]) + 4.0;
        let gamma = if terms * u < 1.0 { terms * u / (1.0 - terms * u) } else { f64::INFINITY };
        // A device may flush subnormal numbers.
        let error = gamma * sum.magnitude + terms * 2f64.powi(-126);
        if sum.largest > f64::from(f32::MAX) { f64::INFINITY } else { error }
    };
    Ok(sums(alpha, a, x, beta, y)?.into_iter().enumerate().map(bound).collect())
}

pub(super) fn product(a: &Csr, x: &[f64]) -> Vec<f64> {
    let row = |row: usize| a.row(row).map(|(col, value)| f64::from(value) * x[col as usize]).sum();
    (0..a.rows).map(row).collect()
}

struct RowSum {
    value: f64,
    /// The same with absolute values of all terms.
    magnitude: f64,
    /// The largest possible intermediate sum.
    largest: f64,
}

fn sums(alpha: f32, a: &Csr, x: &[f32], beta: f32, y: &[f32]) -> Result<Vec<RowSum>> {
    let Csr { rows, cols, .. } = *a;
    if x.len() != cols || y.len() != rows {
        return Err(err!(Shape, "reference spmv: A is {rows} x {cols}, x has {} elements and y {}", x.len(), y.len()));
    }
    let row = |row: usize| {
        let (mut value, mut magnitude) = (0.0, 0.0);
        for (col, factor) in a.row(row) {
            let term = f64::from(factor) * f64::from(x[col as usize]);
            value += term;
            magnitude += term.abs();
        }
        let (alpha, beta) = (f64::from(alpha), f64::from(beta));
        // A factor of 0 hides its operand.
        let product = if alpha == 0.0 { 0.0 } else { alpha * value };
        let size = if alpha == 0.0 { 0.0 } else { alpha.abs() * magnitude };
        let before = if beta == 0.0 { 0.0 } else { beta * f64::from(y[row]) };
        let largest = if alpha == 0.0 { 0.0 } else { magnitude.max(size) };
        RowSum { value: product + before, magnitude: size + before.abs(), largest: largest + before.abs() }
    };
    Ok((0..rows).map(row).collect())
}

#[cfg(test)]
#[path = "tests/spmv.rs"]
mod tests;
