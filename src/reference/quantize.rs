use super::activate;
use super::maps::activation_errors;
use super::prelude::*;
use crate::element::{fp8_code, fp8_value};
use crate::quantize::{Code, Dequantize, GemmInt8, Quantize};

judges! { quantize => judge_quantize, dequantize => judge_dequantize, cast => judge_cast, gemm_int8 => judge_gemm_int8 }

/// The relative error of a device's quotient: 3 ULP, and the rounding of the reference.
const QUOTIENT: f64 = 4e-7;

fn judge_quantize(call: &OpCall) -> Result<Vec<Wanted>> {
    match settings(call)?.choice("kind")? {
        <u8 as Code>::NAME => judge_as::<u8>(call),
        _ => judge_as::<i8>(call),
    }
}

fn judge_as<Q: Code + Number>(call: &OpCall) -> Result<Vec<Wanted>>
where
    HostData: From<Vec<Q>>,
{
    let (op, given) = (descriptor::<Quantize<Q>>(call)?, named::<f32>(call, "scale")?);
    by_input!(call, 0, [f32, f16], T => {
        let x = input::<T>(call, 0)?;
        let scales = given.map_or_else(|| quantize(op, x).1, <[f32]>::to_vec);
        // A computed scale is a quotient too.
        let off = if given.is_some() { QUOTIENT } else { 2.0 * QUOTIENT };
        let span = op.span().max(1);
        let codes = x.iter().enumerate().map(|(i, x)| near_code::<Q>(x.to_f64(), scales[i / span], off));
        let (codes, bound) = codes.unzip();
        let mut all = vec![Wanted::near(&output_shape(call, 0), codes, bound)?];
        if given.is_none() {
            let bound = scales.iter().map(|scale| QUOTIENT * f64::from(*scale)).collect();
            all.push(Wanted::near::<f32>(&output_shape(call, 1), scales, bound)?);
        }
        Ok(all)
    })
}

/// The code of an element, and the distance of the farthest code that is nearest to a quotient with relative error
/// `off`: 1 if the element lies halfway.
fn near_code<Q: Code + Number>(x: f64, scale: f32, off: f64) -> (Q, f64) {
    let y = x / if scale == 0.0 { 1.0 } else { f64::from(scale) };
    let [want, low, high] = [y, y * (1.0 - off), y * (1.0 + off)].map(|y| code::<Q>(y as f32));
    let far = |end: Q| (end.to_f64() - want.to_f64()).abs();
    (want, far(low).max(far(high)))
}

/// Encodes `x` as the nearest code of `Q`, ties to even, saturated. NaN is 0 in `i8`.
pub fn code<Q: Code>(x: f32) -> Q {
    let byte = if Q::NAME == "fp8" {
        fp8_code(x)
    } else {
        // A cast turns NaN into 0.
        f64::from(x).round_ties_even().clamp(-127.0, 127.0) as i8 as u8
    };
    bytemuck::cast(byte)
}

/// Computes `output` and `scale` after `op`.
pub fn quantize<Q: Code, T: Number>(op: &Quantize<Q>, x: &[T]) -> (Vec<Q>, Vec<f32>) {
    let spans = || x.chunks(op.span().max(1));
    let scale: Vec<f32> = spans().map(|span| scale_of::<Q, T>(span)).collect();
    let codes = spans().zip(&scale).flat_map(|(span, scale)| quantize_by(*scale, span));
    (codes.collect(), scale)
}

/// Encodes elements with a given scale.
pub fn quantize_by<Q: Code, T: Number>(scale: f32, x: &[T]) -> Vec<Q> {
    let by = if scale == 0.0 { 1.0 } else { f64::from(scale) };
    x.iter().map(|x| code((x.to_f64() / by) as f32)).collect()
}

/// The largest finite magnitude over the largest code; 0 if that is not a normal number.
fn scale_of<Q: Code, T: Number>(span: &[T]) -> f32 {
    let finite = span.iter().map(|x| x.to_f64().abs()).filter(|x| x.is_finite());
    let scale = finite.fold(0.0, f64::max) / f64::from(Q::LARGEST);
    if scale < f64::from(f32::MIN_POSITIVE) { 0.0 } else { scale as f32 }
}

fn judge_dequantize(call: &OpCall) -> Result<Vec<Wanted>> {
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

/// Judges exactly, except that a device may flush a subnormal f16 to 0.
fn judge_cast(call: &OpCall) -> Result<Vec<Wanted>> {
    let shape = output_shape(call, 0);
    if call.inputs().next().is_some_and(|x| x.dtype() == DType::F32) {
        let x = input::<f32>(call, 0)?;
        return Ok(vec![Wanted::near(&shape, cast::<f32, f16>(x), vec![0.0; x.len()])?]);
    }
    let x = input::<f16>(call, 0)?;
    let least = f16::MIN_POSITIVE.to_f64();
    let bound = x.iter().map(|x| x.to_f64().abs()).map(|x| if x < least { x } else { 0.0 });
    Ok(vec![Wanted::near(&shape, cast::<f16, f32>(x), bound.collect())?])
}

/// Converts `x` to the nearest numbers of `R`, ties to even.
pub fn cast<T: Number, R: Number>(x: &[T]) -> Vec<R> {
    x.iter().map(|x| R::from_f64(x.to_f64())).collect()
}

fn judge_gemm_int8(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, shape) = (descriptor::<GemmInt8>(call)?, output_shape(call, 0));
    let factors = [input(call, 0)?, input(call, 1)?];
    let (Some(a), Some(b)) = (named(call, "a-scale")?, named(call, "b-scale")?) else {
        return Ok(vec![Wanted::exact(&shape, gemm_int8(op, factors[0], factors[1]))?]);
    };
    let bias = named(call, "bias")?;
    let want = gemm_int8_scaled(op, factors, [a, b], bias);
    let want: Vec<f32> = want.into_iter().map(f32::from_f64).collect();
    let bound = gemm_int8_bound::<f32>(op, factors, [a, b], bias);
    Ok(vec![Wanted::near(&shape, want, bound)?])
}

/// Computes `c` after `op`: the sums of products. A short operand counts as 0 beyond its end.
pub fn gemm_int8(op: &GemmInt8, a: &[i8], b: &[i8]) -> Vec<i32> {
    let at = |x: &[i8], i: usize| i32::from(x.get(i).copied().unwrap_or(0));
    let b_at = |i: usize, j: usize| if op.trans_b { j * op.k + i } else { i * op.n + j };
    let sum = |i: usize, j: usize| (0..op.k).map(|q| at(a, i * op.k + q) * at(b, b_at(q, j))).sum();
    (0..op.m).flat_map(|i| (0..op.n).map(move |j| (i, j))).map(|(i, j)| sum(i, j)).collect()
}

/// Computes `c` after `op`, not rounded: `activation(a_scale b_scale sum + bias)`; `bias` has an element for each
/// column of C.
pub fn gemm_int8_scaled(
    op: &GemmInt8, [a, b]: [&[i8]; 2], [a_scale, b_scale]: [&[f32]; 2], bias: Option<&[f32]>,
) -> Vec<f64> {
    each(op, [a, b], [a_scale, b_scale], bias).map(|(x, _)| activate(op.activates(), x)).collect()
}

/// Bounds the difference from [`gemm_int8_scaled`] of each element of `c` after `op` ran: it rounds the sum, the
/// product of the scales, that times the sum, and the sum with the bias. Subnormal numbers may be 0.
pub fn gemm_int8_bound<R: Number>(
    op: &GemmInt8, [a, b]: [&[i8]; 2], [a_scale, b_scale]: [&[f32]; 2], bias: Option<&[f32]>,
) -> Vec<f64> {
    let (slope, own) = activation_errors(op.activates());
    let bound = |(x, terms): (f64, f64)| {
        let y = activate(op.activates(), x);
        let error = slope * 4.0 * 2f64.powi(-23) * terms + own * (1.0 + y.abs()) + 2f64.powi(-126);
        let want = R::from_f64(y);
        spread(want, y, error) + (want.to_f64() - y).abs()
    };
    each(op, [a, b], [a_scale, b_scale], bias).map(bound).collect()
}

/// Each element before the activation, and the sum of the magnitudes of its terms.
fn each<'a>(
    op: &'a GemmInt8, [a, b]: [&[i8]; 2], [a_scale, b_scale]: [&'a [f32]; 2], bias: Option<&'a [f32]>,
) -> impl Iterator<Item = (f64, f64)> {
    let gemm = op;
    gemm_int8(gemm, a, b).into_iter().enumerate().map(move |(at, sum)| {
        let (i, j) = (at / gemm.n, at % gemm.n);
        let product = f64::from(a_scale[i]) * f64::from(b_scale[j]) * f64::from(sum);
        let bias = bias.map_or(0.0, |bias| f64::from(bias[j]));
        (product + bias, product.abs() + bias.abs())
    })
}

#[cfg(test)]
#[path = "tests/quantize.rs"]
mod tests;
