//! Shared by tests of convolution layers: layers, and their lengths.

use crate::support::Device;
use tilework::prelude::*;

/// One layer: shape, filters, kernel, and other options.
type LayerCase = ([usize; 4], usize, [usize; 2], fn(Conv2d) -> Conv2d);

/// Sizes around tiles and vectors, strides, dilations, groups, one-sided padding.
const LAYERS: &[LayerCase] = &[
    ([2, 3, 8, 8], 5, [3, 3], |op| op.pad([1, 1])),
    ([1, 4, 9, 7], 17, [3, 3], |op| op),
    ([3, 16, 6, 8], 16, [3, 3], |op| op.pad([1, 1])),
    ([2, 5, 11, 9], 6, [5, 2], |op| op.stride([2, 3]).pad([2, 1])),
    ([1, 6, 12, 10], 8, [3, 3], |op| op.dilation([2, 3]).pad([3, 2]).groups(2)),
    ([2, 8, 5, 4], 20, [1, 1], |op| op),
    ([1, 7, 4, 4], 4, [1, 1], |op| op.stride([2, 2])),
    ([2, 4, 9, 12], 4, [3, 3], |op| op.pad([1, 1]).groups(4)),
    ([1, 3, 7, 9], 6, [3, 4], |op| op.pad_each([2, 0, 1, 3]).groups(3).dilation([1, 2])),
    ([1, 2, 8, 8], 2, [3, 3], |op| op.stride([2, 2]).pad([1, 1]).groups(2)),
    ([1, 1, 1, 1], 1, [1, 1], |op| op),
    ([2, 1, 1, 9], 3, [1, 4], |op| op.pad([0, 6])),
    ([1, 2, 3, 3], 2, [3, 3], |op| op.pad([3, 3]).stride([3, 3])),
];

/// More channels and outputs than a tile, for the first device.
const LARGE: &[LayerCase] = &[
    ([1, 12, 20, 20], 40, [3, 3], |op| op.pad([1, 1])),
    ([3, 9, 13, 14], 33, [3, 3], |op| op.pad([1, 1])),
    ([2, 5, 21, 17], 18, [7, 7], |op| op.pad([3, 3])),
];

/// The layers, each with the seed of its data; every second one except on the first device.
pub(crate) fn layers(device: &Device) -> impl Iterator<Item = (u64, Conv2d)> {
    let (large, step) = if device.main { (LARGE, 1) } else { (&[][..], 2) };
    let make = |&(shape, filters, kernel, form): &LayerCase| form(Conv2d::new(shape, filters, kernel));
    (1..).zip(LAYERS.iter().chain(large).map(make)).filter(move |(number, _)| number % step == 0)
}

/// Elements of x, weights and output.
pub(crate) fn lengths(op: &Conv2d, shape: [usize; 4]) -> [usize; 3] {
    [shape.iter().product(), op.weights_shape().iter().product(), op.output_shape().unwrap().iter().product()]
}

/// The shape of x of layer `i`.
pub(crate) fn shape(number: u64) -> [usize; 4] {
    LAYERS.iter().chain(LARGE).nth(number as usize - 1).unwrap().0
}
