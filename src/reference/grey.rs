use super::prelude::*;
use crate::image::{Grey, GreyWeights, Layout};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Grey>(call)?;
    by_input!(call, 0, [u8, f16, f32], T => {
        let x = input::<T>(call, 0)?;
        let (want, bound) = (grey(op, x), grey_bound(op, x));
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &want, &bound)?])
    })
}

fn pixels<'a, T: Number>(op: &Grey, input: &'a [T]) -> impl Iterator<Item = [f64; 3]> + 'a {
    let count = input.len() / op.image.channels.max(1);
    let [step, next] = if op.image.layout == Layout::Planar { [1, count] } else { [op.image.channels, 1] };
    (0..count).map(move |i| [0, 1, 2].map(|c| input[i * step + c * next].to_f64()))
}

/// Applies `op` to an image; `u8` results are whole numbers.
pub fn grey<T: Number>(op: &Grey, input: &[T]) -> Vec<f64> {
    let whole = T::DTYPE == DType::U8;
    let of = |[r, g, b]: [f64; 3]| match op.weights {
        GreyWeights::Luma if whole => ((299.0 * r + 587.0 * g + 114.0 * b + 500.0) / 1000.0).floor(),
        GreyWeights::Source if whole => (3.0 * r / 10.0).floor() + (6.0 * g / 10.0).floor() + (b / 10.0).floor(),
        GreyWeights::Luma => 0.299 * r + 0.587 * g + 0.114 * b,
        GreyWeights::Source => 0.3 * r + 0.6 * g + 0.1 * b,
    };
    pixels(op, input).map(of).collect()
}

/// Returns the error bound of each pixel against [`grey`]; 0 for `u8`.
pub fn grey_bound<T: Number>(op: &Grey, input: &[T]) -> Vec<f64> {
    // A rounding of each weight, product and sum.
    let of = |p: [f64; 3]| {
        let size: f64 = p.iter().map(|c| c.abs()).sum();
        let bound = 6.0 * 2f64.powi(-24) * size + 6.0 * f64::from(f32::MIN_POSITIVE);
        if size > f64::from(f32::MAX) { f64::INFINITY } else { bound }
    };
    let whole = T::DTYPE == DType::U8;
    pixels(op, input).map(|p| if whole { 0.0 } else { of(p) }).collect()
}

#[cfg(test)]
#[path = "tests/grey.rs"]
mod tests;
