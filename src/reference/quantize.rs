use super::fp8_code;
use super::prelude::*;
use crate::quantize::{Code, Quantize};

/// The relative error of a device's quotient: 3 ULP, and the rounding of the reference.
const QUOTIENT: f64 = 4e-7;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/quantize.rs"]
mod tests;
