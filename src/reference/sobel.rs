use super::filter3d::outside;
use super::prelude::*;
use crate::conv::Boundary;
use crate::image::{Gradient, Sobel};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Sobel>(call)?;
    by_input!(call, 0, [u8, f16, f32], T => {
        let x = input::<T>(call, 0)?;
        let (mut want, mut bound) = (sobel(op, x), sobel_bound(op, x));
        if T::DTYPE == DType::U8 {
            want.iter_mut().for_each(|g| *g = g.abs().round().min(255.0));
            bound.fill(0.0);
        }
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &want, &bound)?])
    })
}

/// Returns `gx`, `gy`, and the sums of the magnitudes of their terms, for each element.
fn gradients<T: Element + Into<f64>>(op: &Sobel, input: &[T]) -> Vec<[f64; 4]> {
    let [planes, h, row] = op.image.extents();
    let step = op.image.step();
    let mut all = Vec::with_capacity(input.len());
    for z in 0..planes {
        for y in 0..h {
            for e in 0..row {
                let mut sums = [0.0; 4];
                for (j, smooth_y) in [(-1, 1.0), (0, 2.0), (1, 1.0)] {
                    for (i, smooth_x) in [(-1, 1.0), (0, 2.0), (1, 1.0)] {
                        let from_y = outside(Boundary::Clamp, y as isize + j, h).unwrap_or(0);
                        let from_x = outside(Boundary::Clamp, (e / step) as isize + i, row / step).unwrap_or(0);
                        let value: f64 = input[(z * h + from_y) * row + from_x * step + e % step].into();
                        // The axis itself is no term: an infinity on it is not multiplied by 0.
                        let terms = [(i, smooth_y), (j, smooth_x)];
                        for (axis, (side, smooth)) in terms.into_iter().enumerate().filter(|t| t.1.0 != 0) {
                            sums[axis] += side as f64 * smooth * value;
                            sums[2 + axis] += 4.0 * value.abs();
                        }
                    }
                }
                all.push(sums);
            }
        }
    }
    all
}

/// Applies `op` to an image, without rounding. For `u8` take the magnitude, round to the nearest, and saturate.
pub fn sobel<T: Element + Into<f64>>(op: &Sobel, input: &[T]) -> Vec<f64> {
    let of = |[x, y, ..]: [f64; 4]| match op.gradient {
        // Not `hypot`, for which NaN and an infinity make an infinity.
        Gradient::Magnitude => (x * x + y * y).sqrt(),
        Gradient::X => x,
        Gradient::Y => y,
    };
    gradients(op, input).into_iter().map(of).collect()
}

/// Returns the error bound of each element against [`sobel`] in f32.
pub fn sobel_bound<T: Element + Into<f64>>(op: &Sobel, input: &[T]) -> Vec<f64> {
    let bound = |[x, y, of_x, of_y]: [f64; 4]| {
        let size = match op.gradient {
            Gradient::Magnitude => of_x + of_y,
            Gradient::X => of_x,
            Gradient::Y => of_y,
        };
        let sums = 16.0 * 2f64.powi(-24) * size + 16.0 * f64::from(f32::MIN_POSITIVE);
        let magnitude = x.hypot(y);
        match op.gradient {
            Gradient::Magnitude if size > 1e19 => f64::INFINITY,
            // The root, and squares too small for f32.
            Gradient::Magnitude => sums + 16.0 * 2f64.powi(-24) * magnitude + 2f64.powi(-62),
            _ if size > f64::from(f32::MAX) => f64::INFINITY,
            _ => sums,
        }
    };
    gradients(op, input).into_iter().map(bound).collect()
}

#[cfg(test)]
#[path = "tests/sobel.rs"]
mod tests;
