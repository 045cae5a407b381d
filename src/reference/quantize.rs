//! Elements to bytes and scales.

use super::{Number, fp8_code};
use crate::quantize::{Code, Quantize};

/// The code of `Q` that is nearest to `x`, of two the even one; saturated. NaN is 0 in `i8`.
pub fn code<Q: Code>(x: f32) -> Q {
    let byte = if Q::NAME == "fp8" {
        fp8_code(x)
    } else {
        // A cast takes NaN to 0.
        f64::from(x).round_ties_even().clamp(-127.0, 127.0) as i8 as u8
    };
    bytemuck::cast(byte)
}

/// What `output` and `scale` hold after `op`.
pub fn quantize<Q: Code, T: Number>(op: &Quantize<Q>, x: &[T]) -> (Vec<Q>, Vec<f32>) {
    let spans = || x.chunks(op.span().max(1));
    let scale: Vec<f32> = spans().map(|span| scale_of::<Q, T>(span)).collect();
    let codes = spans().zip(&scale).flat_map(|(span, scale)| quantize_by(*scale, span));
    (codes.collect(), scale)
}

/// Elements that have this scale as bytes.
pub fn quantize_by<Q: Code, T: Number>(scale: f32, x: &[T]) -> Vec<Q> {
    let by = if scale == 0.0 { 1.0 } else { f64::from(scale) };
    x.iter().map(|x| code((x.to_f64() / by) as f32)).collect()
}

/// The largest magnitude of what is finite, over the largest code; 0 where that is no normal number.
fn scale_of<Q: Code, T: Number>(span: &[T]) -> f32 {
    let finite = span.iter().map(|x| x.to_f64().abs()).filter(|x| x.is_finite());
    let scale = finite.fold(0.0, f64::max) / f64::from(Q::LARGEST);
    if scale < f64::from(f32::MIN_POSITIVE) { 0.0 } else { scale as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantize::Scales;

    #[test]
    fn rows_and_their_scales_are_those_by_hand() {
        let x = [1.0f32, -127.0, 2.5, 3.5, 0.0, -0.0, 0.0, 0.0];
        let op = Quantize::<i8>::new(2, 4);
        assert_eq!(quantize(&op, &x), (vec![1, -127, 2, 4, 0, 0, 0, 0], vec![1.0, 0.0]));
        let op = Quantize::<u8>::new(2, 4).scales(Scales::Tensor);
        let (codes, scale) =
            quantize(&op, &[448.0f32, 1.0, -2.0, 0.0, 464.0, f32::NAN, 1.0, 1.0].map(|x| x / 464.0 * 448.0));
        assert!((scale[0] - 1.0).abs() < 1e-6);
        assert_eq!((codes[4], codes[5], codes[3]), (0x7e, 0x7f, 0));
        let (codes, scale) =
            quantize(&Quantize::<i8>::new(1, 4), &[f32::INFINITY, f32::NAN, -f32::INFINITY, 12.7]);
        assert_eq!((codes, scale[0]), (vec![127, 0, -127, 127], 12.7 / 127.0));
        assert_eq!(quantize(&Quantize::<i8>::new(1, 2), &[1e-38f32, -1e-38]), (vec![0, 0], vec![0.0]));
    }
}
