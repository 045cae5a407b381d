use super::conv::{LayerSums, OutputSum, WINOGRAD, bounds, check, each_product, largest, rounded};
use super::prelude::*;
use crate::conv::Conv2dBackwardWeights;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Conv2dBackwardWeights>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (x, dy) = (input::<T>(call, 0)?, input(call, 1)?);
        let bound = conv_backward_weights_bound(op, x, dy)?;
        let mut wanted = vec![Wanted::near(&output_shape(call, 0), conv_backward_weights(op, x, dy)?, bound)?];
        if call.outputs().count() > 1 {
            let bound = conv_backward_bias_bound(op, dy)?;
            wanted.push(Wanted::near(&output_shape(call, 1), conv_backward_bias(op, dy)?, bound)?);
        }
        Ok(wanted)
    })
}

/// Computes the gradient with respect to the weights from that with respect to the output.
pub fn conv_backward_weights<T: Number>(op: &Conv2dBackwardWeights, x: &[T], dy: &[T]) -> Result<Vec<T>> {
    Ok(rounded(&weights(op, x, dy)?))
}

/// Bounds the difference from [`conv_backward_weights`] of each element after the op ran: `gamma(k + 4)` times the
/// magnitudes of its k products; where the variant may be Winograd's, as [`conv_bound`](super::conv_bound).
pub fn conv_backward_weights_bound<T: Number>(op: &Conv2dBackwardWeights, x: &[T], dy: &[T]) -> Result<Vec<f64>> {
    Ok(bounds::<T>(&weights(op, x, dy)?))
}

/// Computes the gradient with respect to the bias.
pub fn conv_backward_bias<T: Number>(op: &Conv2dBackwardWeights, dy: &[T]) -> Result<Vec<T>> {
    Ok(rounded(&bias(op, dy)?))
}

/// Bounds the difference from [`conv_backward_bias`] of each element after the op ran.
pub fn conv_backward_bias_bound<T: Number>(op: &Conv2dBackwardWeights, dy: &[T]) -> Result<Vec<f64>> {
    Ok(bounds::<T>(&bias(op, dy)?))
}

fn weights<T: Number>(op: &Conv2dBackwardWeights, x: &[T], dy: &[T]) -> Result<Vec<OutputSum>> {
    let (layer, variant) = op.parts();
    let LayerSums { winograd, matrices } = LayerSums::of::<T>(layer, variant)?;
    let [n, _, p, q] = layer.output_shape()?;
    let [len_x, len_w, len_y] = layer.lengths()?;
    check(layer, &[("x", x.len(), len_x), ("dy", dy.len(), len_y)])?;
    let mut sums = vec![OutputSum::default(); len_w];
    each_product(layer, [p, q], |at| sums[at.w].add(x[at.x].to_f64() * dy[at.y].to_f64()));
    if winograd {
        let tiles = (n * p.div_ceil(4) * q.div_ceil(4)) as f64;
        for sum in &mut sums {
            sum.error = WINOGRAD * 16.0 * tiles * largest(x) * largest(dy);
            sum.close(tiles + 64.0);
        }
    } else {
        sums.iter_mut().for_each(|sum| sum.finish(matrices));
    }
    Ok(sums)
}

fn bias<T: Number>(op: &Conv2dBackwardWeights, dy: &[T]) -> Result<Vec<OutputSum>> {
    let layer = op.parts().0;
    let [_, filters, p, q] = layer.output_shape()?;
    check(layer, &[("dy", dy.len(), layer.lengths()?[2])])?;
    let mut sums = vec![OutputSum::default(); filters];
    for (i, dy) in dy.iter().enumerate() {
        let filter = if layer.last { i % filters } else { i / (p * q) % filters };
        sums[filter].add(dy.to_f64());
    }
    sums.iter_mut().for_each(|sum| sum.finish(false));
    Ok(sums)
}

#[cfg(test)]
#[path = "tests/conv_backward_weights.rs"]
mod tests;
