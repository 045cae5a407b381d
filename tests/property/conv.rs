//! Cases of convolution layers.

use super::draw::{Contents, Draw};
use super::guarded::{Case, wide};
use tilework::prelude::*;
use tilework::reference;
use tilework::{Conv2dBackwardData, Conv2dBackwardWeights};

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
