use super::conv::{ConvEnd, LayerSums, OutputSum, bounds, check, each_product, largest, rounded};
use super::prelude::*;
use crate::conv::ConvTranspose2d;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<ConvTranspose2d>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (x, w, bias) = (input::<T>(call, 0)?, input(call, 1)?, optional_input(call, 2)?);
        let bound = conv_transpose_bound(op, x, w, bias)?;
        Ok(vec![Wanted::near(&output_shape(call, 0), conv_transpose(op, x, w, bias)?, bound)?])
    })
}

/// Computes the output of the layer, with a bias for each channel if one is given.
pub fn conv_transpose<T: Number>(op: &ConvTranspose2d, x: &[T], w: &[T], bias: Option<&[T]>) -> Result<Vec<T>> {
    Ok(rounded(&sums(op, x, w, bias)?))
}

/// Bounds the difference from [`conv_transpose`] of each output after the op ran; see
/// [`conv_bound`](super::conv_bound).
pub fn conv_transpose_bound<T: Number>(op: &ConvTranspose2d, x: &[T], w: &[T], bias: Option<&[T]>) -> Result<Vec<f64>> {
    Ok(bounds::<T>(&sums(op, x, w, bias)?))
}

fn sums<T: Number>(op: &ConvTranspose2d, x: &[T], w: &[T], bias: Option<&[T]>) -> Result<Vec<OutputSum>> {
    let (layer, (activation, variant)) = (op.layer()?, op.end());
    let LayerSums { winograd, matrices } = LayerSums::of::<T>(&layer, variant)?;
    let [output, len_w, _] = layer.lengths()?;
    let [height, width] = op.size();
    let [n, channels, p, q] = layer.shape;
    check(&layer, &[("x", x.len(), n * layer.filters * height * width), ("w", w.len(), len_w)])?;
    if let Some(bias) = bias {
        check(&layer, &[("bias", bias.len(), channels)])?;
    }
    let mut sums = vec![OutputSum::default(); output];
    each_product(&layer, [height, width], |at| sums[at.x].add(x[at.y].to_f64() * w[at.w].to_f64()));
    let from = (layer.filters / layer.groups) as f64;
    let winograd = winograd.then(|| [largest(x), largest(w), from]);
    let last = layer.last;
    ConvEnd { channels, pixels: p * q, last, bias, activation, winograd, matrices }.close(&mut sums);
    Ok(sums)
}

#[cfg(test)]
#[path = "tests/conv_transpose.rs"]
mod tests;
