use super::cgemm::{pair, size, times};
use super::prelude::*;
use crate::dense::Cdot;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (conjugated, x, y) = (descriptor::<Cdot>(call)?.is_conjugated(), input(call, 0)?, input(call, 1)?);
    let bound = cdot_bound(x, y);
    Ok(vec![Wanted::rounded(DType::F32, &[2], &cdot(conjugated, x, y), &[bound; 2])?])
}

/// Returns the real and the imaginary part, in `f64` and not rounded; of the conjugates of x if they are asked for.
pub fn cdot(conjugated: bool, x: &[f32], y: &[f32]) -> [f64; 2] {
    let products = (0..x.len() / 2).map(|i| times(pair(x, i, conjugated), pair(y, i, false)));
    products.fold([0.0; 2], |[a, b], [c, d]| [a + c, b + d])
}

/// Returns the error bound of both parts in f32, in a tree. Nothing is promised where parts overflow.
pub fn cdot_bound(x: &[f32], y: &[f32]) -> f64 {
    let n = (x.len() / 2) as f64;
    let sum: f64 = (0..x.len() / 2).map(|i| size(pair(x, i, false)) * size(pair(y, i, false))).sum();
    if sum > f64::from(f32::MAX) / 4.0 {
        return f64::INFINITY;
    }
    let depth = n.min(64.0 + n.max(1.0).log2() + n / 8192.0) + 3.0;
    2.0 * depth * 2f64.powi(-24) * sum + 2.0 * n * f64::from(f32::MIN_POSITIVE)
}

#[cfg(test)]
#[path = "tests/cdot.rs"]
mod tests;
