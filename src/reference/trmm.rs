use super::prelude::*;
use crate::dense::Trmm;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, b) = (descriptor::<Trmm>(call)?, input::<f32>(call, 0)?, input::<f32>(call, 1)?);
    let (want, bound) = (trmm(op, a, b), trmm_bound(op, a, b));
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

/// Makes each element of C, row by row without gaps, from the products of its sum.
fn each(op: &Trmm, a: &[f32], b: &[f32], of: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let triangle = op.triangle;
    let ldb = triangle.layout_b().ld;
    let element = |row: usize, column: usize| {
        let term = |i: usize| {
            let (of_a, of_b) = match triangle.right {
                true => ([i, column], row * ldb + i),
                false => ([row, i], i * ldb + column),
            };
            let at = triangle.at(of_a[0], of_a[1])?;
            let factor = if of_a[0] == of_a[1] && triangle.unit { 1.0 } else { f64::from(a[at]) };
            Some(factor * f64::from(b[of_b]))
        };
        if op.alpha == 0.0 { 0.0 } else { of(&(0..triangle.side()).filter_map(term).collect::<Vec<_>>()) }
    };
    (0..triangle.m)
        .flat_map(|row| (0..triangle.n).map(move |column| (row, column)))
        .map(|(r, c)| element(r, c))
        .collect()
}

/// Returns C in `f64`, not rounded and without gaps between its rows.
pub fn trmm(op: &Trmm, a: &[f32], b: &[f32]) -> Vec<f64> {
    each(op, a, b, |terms| f64::from(op.alpha) * terms.iter().sum::<f64>())
}

/// Returns the error bound of each element, computed in f32. Nothing is promised where a sum may overflow.
pub fn trmm_bound(op: &Trmm, a: &[f32], b: &[f32]) -> Vec<f64> {
    let alpha = f64::from(op.alpha.abs());
    let largest = a.iter().chain(b).filter(|x| x.is_finite()).fold(1.0f64, |most, x| most.max(x.abs().into()));
    // Factors that a device takes for 0.
    let tiny = 4.0 * f64::from(f32::MIN_POSITIVE) * largest * (1.0 + alpha);
    each(op, a, b, |terms| {
        let size: f64 = terms.iter().map(|x| x.abs()).sum();
        // Not where it is NaN.
        let fits = size * alpha.max(1.0) < f32::MAX.into();
        let steps = (terms.len() + 16) as f64;
        if fits { steps * (2f64.powi(-23) * alpha * size + tiny) } else { f64::INFINITY }
    })
}

#[cfg(test)]
#[path = "tests/trmm.rs"]
mod tests;
