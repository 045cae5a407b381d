use super::fp8_value;
use super::prelude::*;
use crate::quantize::{Code, Dequantize};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    fn of<Q: Code>(call: &OpCall) -> Result<Vec<Wanted>> {
        let op = descriptor::<Dequantize<Q>>(call)?;
        let (x, scale) = (input::<Q>(call, 0)?, input::<f32>(call, 1)?);
        let (want, bound) = (dequantize::<Q, f32>(op, x, scale), dequantize_bound::<Q, f32>(op, x, scale));
        Ok(vec![Wanted::near(&output_shape(call, 0), want, bound)?])
    }
    match settings(call)?.choice("kind")? {
        <u8 as Code>::NAME => of::<u8>(call),
        _ => of::<i8>(call),
    }
}

/// Decodes a code.
pub fn code_value<Q: Code>(code: Q) -> f32 {
    let byte: u8 = bytemuck::cast(code);
    if Q::NAME == "fp8" { fp8_value(byte) } else { f32::from(byte as i8) }
}

/// Computes `output` after `op`.
pub fn dequantize<Q: Code, T: Number>(op: &Dequantize<Q>, x: &[Q], scale: &[f32]) -> Vec<T> {
    products(op, x, scale).map(T::from_f64).collect()
}

/// Bounds the difference from [`dequantize`] of each element after the op ran: it rounds a product.
pub fn dequantize_bound<Q: Code, T: Number>(op: &Dequantize<Q>, x: &[Q], scale: &[f32]) -> Vec<f64> {
    products(op, x, scale).map(|y| spread(T::from_f64(y), y, 2f64.powi(-23) * y.abs())).collect()
}

fn products<Q: Code>(op: &Dequantize<Q>, x: &[Q], scale: &[f32]) -> impl Iterator<Item = f64> {
    let spans = x.chunks(op.span().max(1)).zip(scale);
    spans.flat_map(|(span, scale)| span.iter().map(|x| f64::from(code_value(*x)) * f64::from(*scale)))
}

#[cfg(test)]
#[path = "tests/dequantize.rs"]
mod tests;
