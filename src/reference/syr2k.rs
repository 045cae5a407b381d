use super::prelude::*;
use super::syrk::triangle;
use super::{gemm, gemm_bound};
use crate::dense::{Gemm, Syr2k};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Syr2k>(call)?;
    let (a, b, c) = (input::<f32>(call, 0)?, input::<f32>(call, 1)?, input::<f32>(call, 2)?);
    let (want, bound) = (syr2k(op, a, b, c)?, syr2k_bound(op, a, b, c)?);
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

/// The rows of a factor, one after another.
fn rows<'a>(op: &Syr2k, x: &'a [f32], pitch: usize) -> Result<Vec<&'a [f32]>> {
    let [rows, columns] = op.update.stored();
    let row = |i: usize| {
        let begin = i * pitch;
        x.get(begin..begin + columns).ok_or_else(|| err!(Shape, "reference syr2k: a factor is too short"))
    };
    (0..rows).map(row).collect()
}

fn sides(op: &Syr2k, a: &[f32], b: &[f32]) -> Result<[Vec<f32>; 2]> {
    let [lda, ldb] = op.pitches();
    let (a, b) = (rows(op, a, lda)?, rows(op, b, ldb)?);
    let join = |first: &[&[f32]], second: &[&[f32]]| match op.update.trans {
        true => [first.concat(), second.concat()].concat(),
        false => first.iter().zip(second).flat_map(|(x, y)| [*x, *y].concat()).collect(),
    };
    Ok([join(&a, &b), join(&b, &a)])
}

/// Returns C in `f64`, not rounded; elements outside of the triangle are those of `c`.
pub fn syr2k(op: &Syr2k, a: &[f32], b: &[f32], c: &[f32]) -> Result<Vec<f64>> {
    let [left, right] = sides(op, a, b)?;
    let product = gemm(&Gemm { product: op.product() }, &left, &right, None, c)?;
    Ok(triangle(op.product().layout_c().ld, op.update.n, [op.update.full, op.update.upper], &product, |i| c[i].into()))
}

/// Returns the error bound of each element, computed in f32: 0 outside of the triangle.
pub fn syr2k_bound(op: &Syr2k, a: &[f32], b: &[f32], c: &[f32]) -> Result<Vec<f64>> {
    let [left, right] = sides(op, a, b)?;
    let bound = gemm_bound(&Gemm { product: op.product() }, &left, &right, None, c)?;
    Ok(triangle(op.product().layout_c().ld, op.update.n, [op.update.full, op.update.upper], &bound, |_| 0.0))
}

#[cfg(test)]
#[path = "tests/syr2k.rs"]
mod tests;
