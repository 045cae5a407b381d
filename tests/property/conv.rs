//! Cases of filters and of convolution layers.

use super::draw::{Contents, Draw, typed};
use super::guarded::{Case, wide};
use crate::support::Sample;
use tilework::Element;
use tilework::conv::{Boundary, Filter1d, Filter2d, Filter3d};
use tilework::prelude::*;
use tilework::program::Variant;
use tilework::reference;
use tilework::{Conv2dBackwardData, Conv2dBackwardWeights};

/// Multiples of 1/8, which make sums of bytes exact; a separable filter if requested.
fn weights(draw: &mut Draw, shape: &[usize], lines: bool) -> Vec<f32> {
    let mut eighth = |_| (draw.random().next() % 9) as f32 / 8.0 - 0.375;
    let mut filter: Vec<f32> =
        if lines { vec![1.0] } else { (0..shape.iter().product()).map(&mut eighth).collect() };
    for &n in shape.iter().filter(|_| lines) {
        let line: Vec<f32> = (0..n).map(&mut eighth).collect();
        filter = filter.iter().flat_map(|f| line.iter().map(move |l| f * l)).collect();
    }
    filter
}

/// The expected output of a filter: floats within bounds, bytes by rounding exact sums.
fn with_result<T: Sample>(case: Case, x: &[T], want: Vec<f64>, bound: Vec<f64>) -> Case {
    if T::DTYPE.is_float() {
        return case.given(x).near::<T>(want, bound);
    }
    let byte = |x: &f64| x.round_ties_even().clamp(0.0, 255.0) as u8;
    case.given(x).exactly(&want.iter().map(byte).collect::<Vec<_>>())
}

/// The variant, and whether it needs a separable filter.
fn variant(draw: &mut Draw, variants: &'static [Variant]) -> (&'static str, bool) {
    let name = draw.variant(variants);
    (name, name == "separable" || draw.option(&[false, true, false]))
}

/// An odd extent of a filter, no larger than that of its input.
fn odd(draw: &mut Draw, n: usize) -> usize {
    let extent = draw.option(&[3, 1, 5, 7]);
    extent.min((n.max(1) - 1) / 2 * 2 + 1)
}

pub(super) fn filter1d(draw: &mut Draw) -> Case {
    fn of<T: Sample + Element + Into<f64>>(draw: &mut Draw) -> Case {
        let variant = draw.variant(Filter1d::variants());
        let n = draw.length(1, 5000);
        let r = odd(draw, n);
        let filter = weights(draw, &[r], false);
        let boundary = draw.option(&Boundary::ALL);
        let op = Filter1d::new(n, &filter).boundary(boundary).variant(variant);
        let x = draw.special::<T>(n);
        let (want, bound) = (reference::filter1d(&op, &x), reference::filter1d_bound(&op, &x));
        with_result(Case::new::<T>(op), &x, want, bound)
    }
    typed!(draw, of, [f32, u8])
}

pub(super) fn filter2d(draw: &mut Draw) -> Case {
    fn of<T: Sample + Element + Into<f64>>(draw: &mut Draw) -> Case {
        let (variant, lines) = variant(draw, Filter2d::variants());
        let (h, w) = (draw.length(1, 70), draw.length(1, 70));
        let shape = [odd(draw, h), odd(draw, w)];
        let filter = weights(draw, &shape, lines);
        let boundary = draw.option(&Boundary::ALL);
        let op = Filter2d::new([h, w], shape, &filter).boundary(boundary).variant(variant);
        let x = draw.special::<T>(h * w);
        let (want, bound) = (reference::filter2d(&op, &x), reference::filter2d_bound(&op, &x));
        with_result(Case::new::<T>(op), &x, want, bound)
    }
    typed!(draw, of, [f32, u8])
}

pub(super) fn filter3d(draw: &mut Draw) -> Case {
    fn of<T: Sample + Element + Into<f64>>(draw: &mut Draw) -> Case {
        let (variant, lines) = variant(draw, Filter3d::variants());
        let extents = [draw.length(1, 12), draw.length(1, 20), draw.length(1, 24)];
        let shape = extents.map(|n| odd(draw, n).min(5));
        let filter = weights(draw, &shape, lines);
        let boundary = draw.option(&Boundary::ALL);
        let op = Filter3d::new(extents, shape, &filter).boundary(boundary).variant(variant);
        let x = draw.special::<T>(extents.iter().product());
        let (want, bound) = (reference::filter3d(&op, &x), reference::filter3d_bound(&op, &x));
        with_result(Case::new::<T>(op), &x, want, bound)
    }
    typed!(draw, of, [f32])
}

/// A layer and the shape of x; windows, strides and groups are options, sizes are not.
fn layer(draw: &mut Draw, variant: &str) -> ([usize; 4], Conv2d) {
    let winograd = variant == "winograd";
    let kernel = if winograd { [3, 3] } else { draw.option(&[[3, 3], [1, 1], [2, 3], [5, 5]]) };
    let groups = if variant == "depthwise" { 4 } else { draw.option(&[1, 1, 2, 4]) };
    let one = winograd || matches!(variant, "tiled" | "depthwise");
    let stride = if one { [1, 1] } else { draw.option(&[[1, 1], [2, 2], [1, 3]]) };
    let dilation = if one { [1, 1] } else { draw.option(&[[1, 1], [1, 1], [2, 1]]) };
    let (channels, filters) = if variant == "depthwise" {
        (groups, groups)
    } else {
        (groups * draw.length(1, 6), groups * draw.length(1, 9))
    };
    let pad = draw.option(&[[0, 0], [1, 1], [2, 1]]);
    let reach = |i: usize| dilation[i] * (kernel[i] - 1) + 1;
    let shape =
        [draw.length(1, 3), channels, reach(0).max(draw.length(1, 14)), reach(1).max(draw.length(1, 14))];
    let layer = Conv2d::new(shape, filters, kernel).stride(stride).pad(pad).dilation(dilation).groups(groups);
    (shape, layer.variant(variant))
}

/// Winograd's transforms mix the elements of a tile, so non-finite values spread. Weights are always finite:
/// variants multiply the zeros around x by them.
fn contents(variant: &str) -> Contents {
    if matches!(variant, "winograd" | "auto") { Contents::Unit } else { Contents::Special }
}

pub(super) fn conv(draw: &mut Draw) -> Case {
    let variant = draw.variant(Conv2d::variants());
    let (shape, layer) = layer(draw, variant);
    let op = layer.activation(draw.option(&Activation::ALL));
    let most = contents(variant);
    let x = draw.elements::<f32>(shape.iter().product(), most);
    let w = draw.numbers::<f32>(op.weights_shape().iter().product());
    let bias = draw.option(&[false, true]).then(|| draw.elements::<f32>(op.weights_shape()[0], most));
    let want = reference::conv(&op, &x, &w, bias.as_deref()).unwrap();
    let bound = reference::conv_bound(&op, &x, &w, bias.as_deref()).unwrap();
    match bias {
        Some(bias) => Case::new::<f32>(op.with_bias()).given(&x).given(&w).given(&bias).close(&want, bound),
        None => Case::new::<f32>(op).given(&x).given(&w).close(&want, bound),
    }
}

pub(super) fn conv_transpose(draw: &mut Draw) -> Case {
    let variant = draw.variant(ConvTranspose2d::variants());
    let kernel = draw.option(&[[3, 3], [1, 1], [2, 4]]);
    let groups = draw.option(&[1, 1, 2]);
    let stride = draw.option(&[[1, 1], [2, 2], [3, 1]]);
    let dilation = draw.option(&[[1, 1], [1, 2]]);
    let channels = groups * draw.length(1, 5);
    let shape = [draw.length(1, 3), channels, draw.length(2, 9), draw.length(2, 9)];
    let filters = groups * draw.length(1, 5);
    let op = ConvTranspose2d::new(shape, filters, kernel).stride(stride).dilation(dilation).groups(groups);
    let op = op.activation(draw.option(&Activation::ALL)).variant(variant);
    let x = draw.special::<f32>(shape.iter().product());
    let w = draw.numbers::<f32>(op.weights_shape().iter().product());
    let bias = draw.option(&[false, true]).then(|| draw.special::<f32>(filters));
    let want = reference::conv_transpose(&op, &x, &w, bias.as_deref()).unwrap();
    let bound = reference::conv_transpose_bound(&op, &x, &w, bias.as_deref()).unwrap();
    match bias {
        Some(bias) => Case::new::<f32>(op.with_bias()).given(&x).given(&w).given(&bias).close(&want, bound),
        None => Case::new::<f32>(op).given(&x).given(&w).close(&want, bound),
    }
}

pub(super) fn conv_backward_data(draw: &mut Draw) -> Case {
    let variant = draw.variant(Conv2dBackwardData::variants());
    let (_, layer) = layer(draw, variant);
    let op = Conv2dBackwardData::new(&layer.clone().variant("auto")).variant(variant);
    let most = contents(variant);
    let dy = draw.elements::<f32>(layer.output_shape().unwrap().iter().product(), most);
    let w = draw.numbers::<f32>(layer.weights_shape().iter().product());
    let want = reference::conv_backward_data(&op, &dy, &w).unwrap();
    let bound = reference::conv_backward_data_bound(&op, &dy, &w).unwrap();
    Case::new::<f32>(op).given(&dy).given(&w).close(&want, bound)
}

pub(super) fn conv_backward_weights(draw: &mut Draw) -> Case {
    let variant = draw.variant(Conv2dBackwardWeights::variants());
    let (shape, layer) = layer(draw, variant);
    let op = Conv2dBackwardWeights::new(&layer.clone().variant("auto")).variant(variant);
    let most = contents(variant);
    let x = draw.elements::<f32>(shape.iter().product(), most);
    let dy = draw.numbers::<f32>(layer.output_shape().unwrap().iter().product());
    let want = reference::conv_backward_weights(&op, &x, &dy).unwrap();
    let bound = reference::conv_backward_weights_bound(&op, &x, &dy).unwrap();
    if draw.option(&[false, true]) {
        let of_bias = wide(&reference::conv_backward_bias(&op, &dy).unwrap());
        let bias_bound = reference::conv_backward_bias_bound(&op, &dy).unwrap();
        let case = Case::new::<f32>(op.with_bias()).given(&x).given(&dy).close(&want, bound);
        return case.near::<f32>(of_bias, bias_bound);
    }
    Case::new::<f32>(op).given(&x).given(&dy).close(&want, bound)
}
