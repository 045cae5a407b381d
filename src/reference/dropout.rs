use super::philox;
use super::prelude::*;
use crate::nn::Dropout;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Dropout>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let x = input::<T>(call, 0)?;
        let (want, bound) = (dropout(op, x), dropout_bound(op, x));
        Ok(vec![Wanted::rounded(call.dtype(), &output_shape(call, 0), &want, &bound)?])
    })
}

/// Word `i` of a stream, behind the offset.
pub(super) fn word([seed, stream, offset]: [u64; 3], i: usize) -> u32 {
    let at = offset + i as u64;
    let block = at / 4;
    let counter = [block as u32, (block >> 32) as u32, stream as u32, (stream >> 32) as u32];
    philox(counter, seed)[(at % 4) as usize]
}

/// Returns the elements, not rounded.
pub fn dropout<T: Number>(op: &Dropout, x: &[T]) -> Vec<f64> {
    let (threshold, scale) = op.rule();
    let of = |(i, x): (usize, &T)| {
        if word(op.place(), i) >= threshold { x.to_f64() * f64::from(scale) } else { 0.0 }
    };
    x.iter().enumerate().map(of).collect()
}

/// Bounds the error of each element: one rounding to f32, before that to the type.
pub fn dropout_bound<T: Number>(op: &Dropout, x: &[T]) -> Vec<f64> {
    let of = |y: f64| if y == 0.0 || !y.is_finite() { 0.0 } else { 2f64.powi(-23) * y.abs() + 4.0 * LEAST_NORMAL };
    dropout(op, x).into_iter().map(of).collect()
}

#[cfg(test)]
#[path = "tests/dropout.rs"]
mod tests;
