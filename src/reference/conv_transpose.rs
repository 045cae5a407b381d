//! Transposed convolution.

use super::conv::{ConvEnd, OutputSum, check, each_product, is_winograd, largest};
use super::judge::{Wanted, descriptor, input, optional_input, output_shape};
use super::number::spread;
use crate::conv::ConvTranspose2d;
use crate::error::Result;
use crate::program::Form;

pub(super) fn judge(form: &Form) -> Result<Vec<Wanted>> {
    let op = descriptor::<ConvTranspose2d>(form)?;
    let (x, w, bias) = (input(form, 0)?, input(form, 1)?, optional_input(form, 2)?);
    let bound = conv_transpose_bound(op, x, w, bias)?;
    Ok(vec![Wanted::near(&output_shape(form, 0), conv_transpose(op, x, w, bias)?, bound)?])
}

/// Computes the output of the layer, with a bias for each channel if one is given.
///
/// # Errors
/// As [`conv`](super::conv).
pub fn conv_transpose(op: &ConvTranspose2d, x: &[f32], w: &[f32], bias: Option<&[f32]>) -> Result<Vec<f32>> {
    Ok(sums(op, x, w, bias)?.iter().map(|sum| sum.exact as f32).collect())
}

/// Bounds the difference from [`conv_transpose`] of each output after the op ran; see
/// [`conv_bound`](super::conv_bound).
///
/// # Errors
/// As [`conv`](super::conv).
pub fn conv_transpose_bound(
    op: &ConvTranspose2d,
    x: &[f32],
    w: &[f32],
    bias: Option<&[f32]>,
) -> Result<Vec<f64>> {
    let sums = sums(op, x, w, bias)?;
    Ok(sums.iter().map(|sum| spread(sum.exact as f32, sum.exact, sum.error)).collect())
}

fn sums(op: &ConvTranspose2d, x: &[f32], w: &[f32], bias: Option<&[f32]>) -> Result<Vec<OutputSum>> {
    let (layer, (activation, maybe_winograd)) = (op.layer()?, op.end());
    let [output, len_w, _] = layer.lengths()?;
    let [height, width] = op.size();
    let [n, channels, p, q] = layer.shape;
    check(&layer, &[("x", x.len(), n * layer.filters * height * width), ("w", w.len(), len_w)])?;
    if let Some(bias) = bias {
        check(&layer, &[("bias", bias.len(), channels)])?;
    }
    let mut sums = vec![OutputSum::default(); output];
    each_product(&layer, [height, width], |at| sums[at.x].add(f64::from(x[at.y]) * f64::from(w[at.w])));
    let from = (layer.filters / layer.groups) as f64;
    let winograd = (maybe_winograd && is_winograd(&layer)).then(|| [largest(x), largest(w), from]);
    ConvEnd { channels, pixels: p * q, bias, activation, winograd }.close(&mut sums);
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_adds_its_window() {
        let op = ConvTranspose2d::new([1, 1, 1, 2], 1, [1, 3]).stride([1, 2]);
        let w = [1.0, 2.0, 3.0];
        assert_eq!(conv_transpose(&op, &[1.0, 10.0], &w, None).unwrap(), [1.0, 2.0, 13.0, 20.0, 30.0]);
        let more = op.clone().output_padding([0, 1]);
        let y = conv_transpose(&more, &[1.0, 10.0], &w, Some(&[0.5])).unwrap();
        assert_eq!(y, [1.5, 2.5, 13.5, 20.5, 30.5, 0.5]);
        let less = op.pad([0, 1]);
        assert_eq!(conv_transpose(&less, &[1.0, 10.0], &w, None).unwrap(), [2.0, 13.0, 20.0]);
    }
}
