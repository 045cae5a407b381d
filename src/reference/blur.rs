use super::prelude::*;
use crate::image::{Blur, Divide};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Blur>(call)?;
    by_input!(call, 0, [u8, f16, f32], T => {
        let x = input::<T>(call, 0)?;
        let (want, bound) = (blur(op, x), blur_bound(op, x));
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &want, &bound)?])
    })
}

/// Returns for each element the sum of its window, the sum of magnitudes, and the divisor.
fn windows<T: Number>(op: &Blur, input: &[T]) -> Vec<(f64, f64, f64)> {
    let values: Vec<_> = input.iter().map(|x| (x.to_f64(), x.to_f64().abs(), 1.0)).collect();
    let [planes, h, row] = op.image.extents();
    let step = op.image.step();
    // Sums along an axis of `n` places, `apart` elements from each other. Sums of bytes are exact.
    let along = |values: &[(f64, f64, f64)], n: usize, apart: usize| -> Vec<_> {
        let window = |place: usize| {
            let i = place / apart % n;
            let from = i.saturating_sub(op.radius)..=(i + op.radius).min(n - 1);
            from.map(|j| values[place - i * apart + j * apart])
                .fold((0.0, 0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2))
        };
        (0..values.len()).map(window).collect()
    };
    if planes * h * row == 0 {
        return Vec::new();
    }
    let mut all = along(&along(&values, row / step, step), h, row);
    if op.divide == Divide::Window {
        all.iter_mut().for_each(|w| w.2 = (2.0 * op.radius as f64 + 1.0).powi(2));
    }
    all
}

/// Applies `op` to an image; `u8` results are whole numbers.
pub fn blur<T: Number>(op: &Blur, input: &[T]) -> Vec<f64> {
    let mean = |(sum, _, count): (f64, f64, f64)| match op.divide {
        _ if T::DTYPE != DType::U8 => sum / count,
        Divide::Inside => ((2.0 * sum + count) / (2.0 * count)).floor(),
        Divide::Window => (sum / count).floor(),
    };
    windows(op, input).into_iter().map(mean).collect()
}

/// Returns the error bound of each element against [`blur`]; 0 for `u8`.
pub fn blur_bound<T: Number>(op: &Blur, input: &[T]) -> Vec<f64> {
    // A rounding a term, and those of the quotient.
    let bound = |(_, size, count): (f64, f64, f64)| {
        (count + 4.0) * 2f64.powi(-24) * size / count + 2.0 * f64::from(f32::MIN_POSITIVE)
    };
    let whole = T::DTYPE == DType::U8;
    windows(op, input).into_iter().map(|w| if whole { 0.0 } else { bound(w) }).collect()
}

#[cfg(test)]
#[path = "tests/blur.rs"]
mod tests;
