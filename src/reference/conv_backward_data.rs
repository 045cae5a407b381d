use super::conv::{ConvEnd, LayerSums, OutputSum, bounds, check, each_product, largest, rounded};
use super::prelude::*;
use crate::conv::Conv2dBackwardData;
use crate::dense::Activation;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Conv2dBackwardData>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (dy, w) = (input::<T>(call, 0)?, input(call, 1)?);
        let bound = conv_backward_data_bound(op, dy, w)?;
        Ok(vec![Wanted::near(&output_shape(call, 0), conv_backward_data(op, dy, w)?, bound)?])
    })
}

/// Computes the gradient with respect to x from that with respect to the output.
pub fn conv_backward_data<T: Number>(op: &Conv2dBackwardData, dy: &[T], w: &[T]) -> Result<Vec<T>> {
    Ok(rounded(&sums(op, dy, w)?))
}

/// Bounds the difference from [`conv_backward_data`] of each element after the op ran; see
/// [`conv_bound`](super::conv_bound).
pub fn conv_backward_data_bound<T: Number>(op: &Conv2dBackwardData, dy: &[T], w: &[T]) -> Result<Vec<f64>> {
    Ok(bounds::<T>(&sums(op, dy, w)?))
}

fn sums<T: Number>(op: &Conv2dBackwardData, dy: &[T], w: &[T]) -> Result<Vec<OutputSum>> {
    let (layer, variant) = op.parts();
    let LayerSums { winograd, matrices } = LayerSums::of::<T>(layer, variant)?;
    let [_, filters, p, q] = layer.output_shape()?;
    let [len_x, len_w, len_y] = layer.lengths()?;
    check(layer, &[("dy", dy.len(), len_y), ("w", w.len(), len_w)])?;
    let mut sums = vec![OutputSum::default(); len_x];
    each_product(layer, [p, q], |at| sums[at.x].add(dy[at.y].to_f64() * w[at.w].to_f64()));
    let channels = (filters / layer.groups) as f64;
    let winograd = winograd.then(|| [largest(dy), largest(w), channels]);
    let [_, channels, h, w] = layer.shape;
    let (activation, last) = (Activation::None, layer.last);
    ConvEnd::<T> { channels, pixels: h * w, last, bias: None, activation, winograd, matrices }.close(&mut sums);
    Ok(sums)
}

#[cfg(test)]
#[path = "tests/conv_backward_data.rs"]
mod tests;
