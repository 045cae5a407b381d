use super::prelude::*;
use crate::dense::{HalfMatrix, Syr2};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/syr2.rs"]
mod tests;
