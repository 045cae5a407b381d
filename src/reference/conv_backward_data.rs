//! The gradient of a convolution layer with respect to its input.

use super::conv::{ConvEnd, LayerSums, OutputSum, bounds, check, each_product, largest, rounded};
use super::judge::{Wanted, by_input, descriptor, input, output_shape};
use super::number::Number;
use crate::conv::Conv2dBackwardData;
use crate::dense::Activation;
use crate::error::Result;
use crate::program::OpCall;
use half::f16;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Conv2dBackwardData>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (dy, w) = (input::<T>(call, 0)?, input(call, 1)?);
        let bound = conv_backward_data_bound(op, dy, w)?;
        Ok(vec![Wanted::near(&output_shape(call, 0), conv_backward_data(op, dy, w)?, bound)?])
    })
}

/// Computes the gradient with respect to x from that with respect to the output.
///
/// # Errors
/// As [`conv`](super::conv).
pub fn conv_backward_data<T: Number>(op: &Conv2dBackwardData, dy: &[T], w: &[T]) -> Result<Vec<T>> {
    Ok(rounded(&sums(op, dy, w)?))
}

/// Bounds the difference from [`conv_backward_data`] of each element after the op ran; see
/// [`conv_bound`](super::conv_bound).
///
/// # Errors
/// As [`conv`](super::conv).
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
    ConvEnd::<T> { channels, pixels: h * w, last, bias: None, activation, winograd, matrices }
        .close(&mut sums);
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::Conv2d;
    use crate::reference::conv;

    #[test]
    fn every_output_gives_its_window_back() {
        let layer = Conv2d::new([1, 1, 1, 4], 1, [1, 2]).stride([1, 2]);
        let dx = conv_backward_data(&Conv2dBackwardData::new(&layer), &[1.0f32, 10.0], &[2.0, 3.0]).unwrap();
        assert_eq!(dx, [2.0, 3.0, 20.0, 30.0]);
    }

    #[test]
    fn matches_finite_differences() {
        let layer =
            Conv2d::new([2, 4, 5, 6], 6, [3, 2]).stride([2, 1]).pad([1, 1]).dilation([1, 2]).groups(2);
        let [len_x, len_w, len_y] = layer.parts().0.lengths().unwrap();
        let value = |i: usize| ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0;
        let x: Vec<f32> = (0..len_x).map(value).collect();
        let w: Vec<f32> = (0..len_w).map(|i| value(i + 5)).collect();
        let dy: Vec<f32> = (0..len_y).map(|i| value(3 * i)).collect();
        let loss = |x: &[f32]| {
            let y = conv(&layer, x, &w, None).unwrap();
            y.iter().zip(&dy).map(|(y, dy)| f64::from(*y) * f64::from(*dy)).sum::<f64>()
        };
        let dx = conv_backward_data(&Conv2dBackwardData::new(&layer), &dy, &w).unwrap();
        for i in 0..len_x {
            let (mut up, mut down) = (x.clone(), x.clone());
            up[i] += 0.5;
            down[i] -= 0.5;
            // The layer is linear: any step will do.
            let slope = (loss(&up) - loss(&down)) / f64::from(up[i] - down[i]);
            assert!((slope - f64::from(dx[i])).abs() < 1e-4, "{i}: {slope} {}", dx[i]);
        }
    }
}
