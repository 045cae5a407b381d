use super::filter3d::outside;
use super::prelude::*;
use crate::image::Gaussian;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Gaussian>(call)?;
    by_input!(call, 0, [u8, f16, f32], T => {
        let x = input::<T>(call, 0)?;
        // Bytes are the nearest to what came, anywhere within the bound.
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &gaussian(op, x), &gaussian_bound(op, x))?])
    })
}

/// The sum of each element, and the same with every term made positive.
fn sums<T: Element + Into<f64>>(op: &Gaussian, input: &[T]) -> Vec<(f64, f64)> {
    let values = input.iter().map(|&x| x.into()).map(|x: f64| (x, x.abs())).collect::<Vec<_>>();
    let [planes, h, row] = op.image.extents();
    let step = op.image.step();
    let (weights, radius) = (op.weights(), op.reach() as isize);
    // Sums along an axis of `n` places, `apart` elements from each other.
    let along = |values: &[(f64, f64)], n: usize, apart: usize| -> Vec<(f64, f64)> {
        (0..values.len())
            .map(|place| {
                let i = place / apart % n;
                let terms = weights.iter().zip(-radius..).filter_map(|(weight, off)| {
                    let from = outside(op.boundary, i as isize + off, n)?;
                    let (sum, size) = values[place - i * apart + from * apart];
                    Some((weight * sum, weight * size))
                });
                terms.fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
            })
            .collect()
    };
    if planes * h * row == 0 {
        return Vec::new();
    }
    along(&along(&values, row / step, step), h, row)
}

/// Applies `op` to an image, without rounding. For `u8` round to the nearest.
pub fn gaussian<T: Element + Into<f64>>(op: &Gaussian, input: &[T]) -> Vec<f64> {
    sums(op, input).into_iter().map(|(sum, _)| sum).collect()
}

/// Returns the error bound of each element against [`gaussian`], before rounding to `u8`: `(t^2 + 8) u s + 2 t^2 m`,
/// with `t` weights along an axis, u = 2^-24, `s` the weighted sum of the window's magnitudes and `m` the smallest
/// normal f32.
pub fn gaussian_bound<T: Element + Into<f64>>(op: &Gaussian, input: &[T]) -> Vec<f64> {
    // A rounding of a sum a term, one of each weight, and one of their product; the naive one sums by windows.
    let taps = op.weights().len() as f64;
    let gamma = (taps * taps + 8.0) / 2.0;
    let flush = 2.0 * taps * taps * f64::from(f32::MIN_POSITIVE);
    sums(op, input).into_iter().map(|(_, size)| gamma * 2f64.powi(-23) * size + flush).collect()
}

#[cfg(test)]
#[path = "tests/gaussian.rs"]
mod tests;
