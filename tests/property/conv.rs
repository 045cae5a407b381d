//! Cases of convolution layers.

use super::draw::{Contents, Draw};
use super::guarded::{Case, wide};
use crate::support::Sample;
use half::f16;
use tilework::prelude::*;
use tilework::program::Op;
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
    let shape = [draw.length(1, 3), channels, reach(0).max(draw.length(1, 14)), reach(1).max(draw.length(1, 14))];
    let layer = Conv2d::new(shape, filters, kernel).stride(stride).pad(pad).dilation(dilation).groups(groups);
    let last = has_orders(variant) && draw.option(&[false, false, true]);
    (shape, layer.variant(variant).when(last, |op| op.channels_last()))
}

/// Says if the variant takes f16 and channels last.
fn has_orders(variant: &str) -> bool {
    matches!(variant, "auto" | "direct" | "implicit" | "coop")
}

/// Says if the elements of a case are f16.
fn is_half(draw: &mut Draw, variant: &str) -> bool {
    variant == "coop" || (has_orders(variant) || variant == "depthwise") && draw.option(&[false, false, true])
}

/// Winograd's transforms mix the elements of a tile, so non-finite values spread. Weights are always finite:
/// variants multiply the zeros around x by them.
fn contents(variant: &str) -> Contents {
    if matches!(variant, "winograd" | "auto") { Contents::Unit } else { Contents::Special }
}

pub(super) fn conv(draw: &mut Draw) -> Case {
    let variant = draw.variant(Conv2d::variants());
    if is_half(draw, variant) { conv_of::<f16>(draw, variant) } else { conv_of::<f32>(draw, variant) }
}

fn conv_of<T: Sample>(draw: &mut Draw, variant: &'static str) -> Case
where
    Conv2d: Op<T>,
{
    let (shape, layer) = layer(draw, variant);
    let op = layer.activation(draw.option(&Activation::ALL));
    let most = contents(variant);
    let x = draw.elements::<T>(shape.iter().product(), most);
    let w = draw.numbers::<T>(op.weights_shape().iter().product());
    let bias = draw.option(&[false, true]).then(|| draw.elements::<T>(op.weights_shape()[0], most));
    let want = reference::conv(&op, &x, &w, bias.as_deref()).unwrap();
    let bound = reference::conv_bound(&op, &x, &w, bias.as_deref()).unwrap();
    match bias {
        Some(bias) => Case::new::<T>(op.with_bias()).given(&x).given(&w).given(&bias).close(&want, bound),
        None => Case::new::<T>(op).given(&x).given(&w).close(&want, bound),
    }
}

pub(super) fn conv_transpose(draw: &mut Draw) -> Case {
    let variant = draw.variant(ConvTranspose2d::variants());
    if is_half(draw, variant) { transpose_of::<f16>(draw, variant) } else { transpose_of::<f32>(draw, variant) }
}

fn transpose_of<T: Sample>(draw: &mut Draw, variant: &'static str) -> Case
where
    ConvTranspose2d: Op<T>,
{
    let kernel = draw.option(&[[3, 3], [1, 1], [2, 4]]);
    let groups = draw.option(&[1, 1, 2]);
    let stride = draw.option(&[[1, 1], [2, 2], [3, 1]]);
    let dilation = draw.option(&[[1, 1], [1, 2]]);
    let channels = groups * draw.length(1, 5);
    let shape = [draw.length(1, 3), channels, draw.length(2, 9), draw.length(2, 9)];
    let filters = groups * draw.length(1, 5);
    let op = ConvTranspose2d::new(shape, filters, kernel).stride(stride).dilation(dilation).groups(groups);
    let last = has_orders(variant) && draw.option(&[false, false, true]);
    let op = op.activation(draw.option(&Activation::ALL)).variant(variant).when(last, |op| op.channels_last());
    let x = draw.special::<T>(shape.iter().product());
    let w = draw.numbers::<T>(op.weights_shape().iter().product());
    let bias = draw.option(&[false, true]).then(|| draw.special::<T>(filters));
    let want = reference::conv_transpose(&op, &x, &w, bias.as_deref()).unwrap();
    let bound = reference::conv_transpose_bound(&op, &x, &w, bias.as_deref()).unwrap();
    match bias {
        Some(bias) => Case::new::<T>(op.with_bias()).given(&x).given(&w).given(&bias).close(&want, bound),
        None => Case::new::<T>(op).given(&x).given(&w).close(&want, bound),
    }
}

pub(super) fn conv_backward_data(draw: &mut Draw) -> Case {
    let variant = draw.variant(Conv2dBackwardData::variants());
    if is_half(draw, variant) { data_of::<f16>(draw, variant) } else { data_of::<f32>(draw, variant) }
}

fn data_of<T: Sample>(draw: &mut Draw, variant: &'static str) -> Case
where
    Conv2dBackwardData: Op<T>,
{
    let (_, layer) = layer(draw, variant);
    let op = Conv2dBackwardData::new(&layer.clone().variant("auto")).variant(variant);
    let most = contents(variant);
    let dy = draw.elements::<T>(layer.output_shape().unwrap().iter().product(), most);
    let w = draw.numbers::<T>(layer.weights_shape().iter().product());
    let want = reference::conv_backward_data(&op, &dy, &w).unwrap();
    let bound = reference::conv_backward_data_bound(&op, &dy, &w).unwrap();
    Case::new::<T>(op).given(&dy).given(&w).close(&want, bound)
}

pub(super) fn conv_backward_weights(draw: &mut Draw) -> Case {
    let variant = draw.variant(Conv2dBackwardWeights::variants());
    if is_half(draw, variant) { weights_of::<f16>(draw, variant) } else { weights_of::<f32>(draw, variant) }
}

fn weights_of<T: Sample>(draw: &mut Draw, variant: &'static str) -> Case
where
    Conv2dBackwardWeights: Op<T>,
{
    let (shape, layer) = layer(draw, variant);
    let op = Conv2dBackwardWeights::new(&layer.clone().variant("auto")).variant(variant);
    let most = contents(variant);
    let x = draw.elements::<T>(shape.iter().product(), most);
    let dy = draw.numbers::<T>(layer.output_shape().unwrap().iter().product());
    let want = reference::conv_backward_weights(&op, &x, &dy).unwrap();
    let bound = reference::conv_backward_weights_bound(&op, &x, &dy).unwrap();
    if draw.option(&[false, true]) {
        let of_bias = wide(&reference::conv_backward_bias(&op, &dy).unwrap());
        let bias_bound = reference::conv_backward_bias_bound(&op, &dy).unwrap();
        let case = Case::new::<T>(op.with_bias()).given(&x).given(&dy).close(&want, bound);
        return case.near::<T>(of_bias, bias_bound);
    }
    Case::new::<T>(op).given(&x).given(&dy).close(&want, bound)
}
