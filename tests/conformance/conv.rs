//! Convolution layers; 1-D images become images of one line.

use super::array::Array;
use super::elementwise::{elements, numbers};
use super::nn::{pads, two};
use super::{Call, Stop};
use crate::support::onnx::Attribute;
use tilework::DType;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{conv_bound, conv_transpose_bound};

/// A node's operands, and the geometry of its windows.
struct Layer {
    x: Vec<f32>,
    w: Vec<f32>,
    bias: Option<Vec<f32>>,
    shape: [usize; 4],
    axes: usize,
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
    /// Extents of the weights before those of the window.
    channels: [usize; 2],
}

impl Layer {
    fn of(call: &Call) -> Result<Self, Stop> {
        let (dtype, x) = call.operand(0)?;
        let (_, w) = call.operand(1)?;
        let bias = call.input(2).map(|_| call.operand(2)).transpose()?;
        let [n, c, ref spatial @ ..] = x.dims[..] else { return Err(Stop::Failed("no image".into())) };
        let axes = spatial.len();
        if axes > 2 {
            return Err(Stop::out_of_scope("layers have two axes", format!("{axes} axes")));
        }
        if dtype != DType::F32 {
            return Err(Stop::out_of_scope("convolution does not take", dtype));
        }
        let in_plane = |dims: &[usize]| if let [w] = *dims { [1, w] } else { [dims[0], dims[1]] };
        let [h, width] = in_plane(spatial);
        Ok(Self {
            x: elements(&x),
            w: elements(&w),
            bias: bias.map(|(_, bias)| elements(&bias)),
            shape: [n, c, h, width],
            axes,
            kernel: in_plane(&w.dims[2..]),
            stride: two(call, "strides", axes, 1),
            dilation: two(call, "dilations", axes, 1),
            groups: call.int("group", 1) as usize,
            channels: [w.dims[0], w.dims[1]],
        })
    }

    fn span(&self, axis: usize) -> usize {
        (self.kernel[axis] - 1) * self.dilation[axis] + 1
    }

    /// Runs with the bias if the node has one.
    fn run(&self, gpu: &Gpu, plain: &impl Op<f32>, biased: &impl Op<f32>, shape: [usize; 4]) -> Result<Vec<f32>, Stop> {
        let (x, w) = (gpu.upload(&self.x)?, gpu.upload(&self.w)?);
        let y = gpu.alloc::<f32>(shape.iter().product())?;
        let mut rec = gpu.recorder();
        let plan = match &self.bias {
            Some(_) => biased.plan::<f32>(gpu)?.into_executable(),
            None => plain.plan::<f32>(gpu)?.into_executable(),
        };
        let bias = self.bias.as_ref().map(|bias| gpu.upload(bias)).transpose()?;
        let operands = [Some(&x), Some(&w), bias.as_ref(), Some(&y)];
        let operands: Vec<_> = operands.into_iter().flatten().map(|x| Slice::from(x).untyped()).collect();
        plan.record(&mut rec, &operands)?;
        rec.submit()?;
        Ok(y.read()?)
    }

    fn dims(&self, [n, m, p, q]: [usize; 4]) -> Vec<usize> {
        if self.axes == 1 { vec![n, m, q] } else { vec![n, m, p, q] }
    }
}

pub(super) fn conv(call: &Call) -> Result<Array, Stop> {
    let layer = Layer::of(call)?;
    let along =
        |axis: usize| pads(call, axis, layer.axes, layer.shape[2 + axis], [layer.span(axis), layer.stride[axis]]);
    let ([top, bottom], [left, right]) = (along(0), along(1));
    let op = Conv2d::new(layer.shape, layer.channels[0], layer.kernel)
        .stride(layer.stride)
        .dilation(layer.dilation)
        .groups(layer.groups)
        .pad_each([top, left, bottom, right]);
    let shape = op.output_shape()?;
    let got = layer.run(call.gpu, &op, &op.clone().with_bias(), shape)?;
    let bound = conv_bound(&op, &layer.x, &layer.w, layer.bias.as_deref())?;
    Ok(Array { dims: layer.dims(shape), values: numbers(&got), bound })
}

/// The elements cropped from an output along an axis, before and after, and those added after it.
fn cut(call: &Call, layer: &Layer, axis: usize, padding: usize) -> [usize; 3] {
    let place = (axis + layer.axes).wrapping_sub(2);
    if place >= layer.axes {
        return [0; 3];
    }
    let (size, stride) = (layer.shape[2 + axis], layer.stride[axis]);
    let automatic = match call.node.attribute("auto_pad") {
        Some(Attribute::Str(name)) if name.starts_with("SAME") => Some(name == "SAME_UPPER"),
        _ => None,
    };
    let wanted = match (call.node.attribute("output_shape"), automatic) {
        (Some(Attribute::Ints(values)), _) => values[values.len() - layer.axes + place] as usize,
        (_, Some(_)) => size * stride,
        _ => match call.node.attribute("pads") {
            Some(Attribute::Ints(values)) => {
                return [values[place] as usize, values[place + layer.axes] as usize, padding];
            }
            _ => return [0, 0, padding],
        },
    };
    let all = (size - 1) * stride + padding + layer.span(axis);
    let total = all.saturating_sub(wanted);
    let (less, more) = (total / 2, total - total / 2);
    let [before, after] = if automatic == Some(true) { [less, more] } else { [more, less] };
    [before, after, padding + wanted.saturating_sub(all)]
}

pub(super) fn conv_transpose(call: &Call) -> Result<Array, Stop> {
    let layer = Layer::of(call)?;
    let padding = match call.node.attribute("output_padding") {
        Some(_) => two(call, "output_padding", layer.axes, 0),
        None => [0, 0],
    };
    let padding = if layer.axes == 1 { [0, padding[1]] } else { padding };
    let along = |axis: usize| cut(call, &layer, axis, padding[axis]);
    let ([top, bottom, below], [left, right, behind]) = (along(0), along(1));
    let op = ConvTranspose2d::new(layer.shape, layer.channels[1] * layer.groups, layer.kernel)
        .stride(layer.stride)
        .dilation(layer.dilation)
        .groups(layer.groups)
        .output_padding([below, behind])
        .pad_each([top, left, bottom, right]);
    let shape = op.output_shape()?;
    let got = layer.run(call.gpu, &op, &op.clone().with_bias(), shape)?;
    let bound = conv_transpose_bound(&op, &layer.x, &layer.w, layer.bias.as_deref())?;
    Ok(Array { dims: layer.dims(shape), values: numbers(&got), bound })
}
