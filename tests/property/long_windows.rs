//! Layers, filters, pools and images over long extents: as `long`.

use super::guarded::Case;
use super::long::{LENGTHS, check, near, ones};
use crate::support::coverage::{all, sample};
use tilework::conv::{Boundary, Filter1d, Filter2d, Filter3d};
use tilework::nn::{Pool2dBackwardWeights, PoolKind};
use tilework::prelude::*;
use tilework::reference;
use tilework::{Conv2dBackwardData, Conv2dBackwardWeights, Pool2dBackward};

/// Shape, filters, window, groups of layers with one long extent: channels, window, batch, filters, groups, outputs.
const LAYERS: [([usize; 4], usize, [usize; 2], usize); 13] = [
    ([1, 60_000, 3, 3], 1, [3, 3], 1),
    ([1, 70_000, 1, 1], 1, [1, 1], 1),
    ([1, 1000, 8, 8], 1, [7, 7], 1),
    ([1, 200_000, 1, 4], 2, [1, 1], 1),
    ([1, 131_072, 1, 2], 2, [1, 1], 1),
    ([1, 1, 300, 300], 2, [300, 300], 1),
    ([1, 8000, 3, 3], 1, [3, 3], 1),
    ([70_000, 1, 1, 1], 1, [1, 1], 1),
    ([1, 1, 1, 1], 70_000, [1, 1], 1),
    ([1, 3, 260, 270], 2, [1, 1], 1),
    ([1, 2, 260, 270], 2, [3, 3], 1),
    ([1, 70_000, 1, 1], 70_000, [1, 1], 70_000),
    ([1, 2, 11, 6400], 2, [11, 6400], 2),
];

/// The layers, with the long extent on the side of x or of the output.
fn layers(from_output: bool) -> impl Iterator<Item = ([usize; 4], Conv2d)> {
    sample(&LAYERS, 2).iter().map(move |&([n, c, h, w], filters, kernel, groups)| {
        let (c, filters) = if from_output { (filters, c) } else { (c, filters) };
        ([n, c, h, w], Conv2d::new([n, c, h, w], filters, kernel).groups(groups))
    })
}

fn is_large([_, _, r, s]: [usize; 4]) -> bool {
    r * s > 1000
}

fn ones_of(shape: [usize; 4]) -> Vec<f32> {
    ones(shape.iter().product())
}

#[test]
fn long_extents_of_conv() {
    for (shape, layer) in layers(false) {
        let (x, w) = (ones_of(shape), ones_of(layer.weights_shape()));
        let terms = (w.len() / layer.weights_shape()[0]) as f32;
        let want = vec![terms; layer.output_shape().unwrap().iter().product()];
        check(Conv2d::variants(), |name| {
            near(Case::new::<f32>(layer.clone().variant(name)).given(&x).given(&w), &want)
        });
    }
}

#[test]
fn long_extents_of_conv_backward() {
    // Each cell of a large window sums few terms, but there are many cells.
    for (_, layer) in layers(true).filter(|(_, layer)| !is_large(layer.weights_shape())) {
        let (dy, w) = (ones_of(layer.output_shape().unwrap()), ones_of(layer.weights_shape()));
        let op = Conv2dBackwardData::new(&layer);
        let want = reference::conv_backward_data(&op, &dy, &w).unwrap();
        check(Conv2dBackwardData::variants(), |name| {
            near(Case::new::<f32>(op.clone().variant(name)).given(&dy).given(&w), &want)
        });
    }
    let wide = [([1, 1, 1, 70_000], Conv2d::new([1, 1, 1, 70_000], 1, [1, 1]))];
    for (shape, layer) in layers(false).chain(wide.into_iter().filter(|_| all())) {
        let (x, dy) = (ones_of(shape), ones_of(layer.output_shape().unwrap()));
        let [n, _, p, q] = layer.output_shape().unwrap();
        let op = Conv2dBackwardWeights::new(&layer);
        let want = vec![(n * p * q) as f32; layer.weights_shape().iter().product()];
        let of_bias = vec![(n * p * q) as f32; layer.weights_shape()[0]];
        check(Conv2dBackwardWeights::variants(), |name| {
            let case = Case::new::<f32>(op.clone().variant(name).with_bias()).given(&x).given(&dy);
            near(near(case, &want), &of_bias)
        });
    }
}

#[test]
fn long_extents_of_conv_transpose() {
    for &([n, c, h, w], filters, kernel, groups) in sample(&LAYERS, 2) {
        let op = ConvTranspose2d::new([n, c, h, w], filters, kernel).groups(groups);
        if is_large(op.weights_shape()) {
            continue;
        }
        let (x, weights) = (ones_of([n, c, h, w]), ones_of(op.weights_shape()));
        let want = reference::conv_transpose(&op, &x, &weights, None).unwrap();
        check(ConvTranspose2d::variants(), |name| {
            near(Case::new::<f32>(op.clone().variant(name)).given(&x).given(&weights), &want)
        });
    }
}

#[test]
fn long_filters() {
    // A filter as long as the signal; with zeros outside, each output sums some of the ones.
    let filtered = |n: usize| (0..n).map(|i| (n - i.abs_diff(n / 2)) as f32).collect::<Vec<_>>();
    for &n in sample(&[20_001, 70_001], 1) {
        let (x, want) = (ones(n), filtered(n));
        check(Filter1d::variants(), |name| {
            let op = Filter1d::new(n, &x).boundary(Boundary::Zero).variant(name);
            near(Case::new::<f32>(op).given(&x), &want)
        });
    }
    let n = 70_001;
    let (x, want) = (ones(n), filtered(n));
    for &[h, w] in sample(&[[1, n], [n, 1]], 1) {
        check(Filter2d::variants(), |name| {
            let op = Filter2d::new([h, w], [h, w], &x).boundary(Boundary::Zero).variant(name);
            near(Case::new::<f32>(op).given(&x), &want)
        });
    }
    check(Filter3d::variants(), |name| {
        let op = Filter3d::new([n, 1, 1], [n, 1, 1], &x).boundary(Boundary::Zero).variant(name);
        near(Case::new::<f32>(op).given(&x), &want)
    });
}

#[test]
fn long_windows_of_pools() {
    let kinds = [PoolKind::Max, PoolKind::Average, PoolKind::L2];
    let windows = [
        ([1, 2, 300, 300], [300, 300]),
        ([1, 1, 1, 70_000], [1, 70_000]),
        ([1, 1, 1000, 1001], [1000, 1001]),
        ([1, 70_000, 2, 2], [2, 2]),
        ([1, 1, 100, 100], [50, 50]),
        ([1, 1, 1, 200_000], [1, 200_000]),
    ];
    for &(shape, kernel) in sample(&windows, 1) {
        let weighted = PoolKind::Weighted(ones(kernel[0] * kernel[1]));
        for kind in kinds.clone().into_iter().chain([weighted]) {
            let stride = if kernel == [2, 2] { [2, 2] } else { [60, 60] };
            let op = Pool2d::new(kind.clone(), shape, kernel).stride(stride);
            let x = ones_of(shape);
            let want = reference::pool(&op, &x, None).unwrap();
            check(Pool2d::variants(), |name| near(Case::new::<f32>(op.clone().variant(name)).given(&x), &want));
            let op = Pool2dBackward::new(kind, shape, kernel).stride(stride);
            let dy = ones_of(op.dy_shape().unwrap());
            if kernel == [2, 2] {
                let op = Pool2dBackwardWeights::new(shape, kernel);
                let want = reference::pool_backward_weights(&op, &x, &dy).unwrap();
                check(Pool2dBackwardWeights::variants(), |name| {
                    near(Case::new::<f32>(op.clone().variant(name)).given(&x).given(&dy), &want)
                });
            }
            let want = reference::pool_backward(&op, &x, &dy).unwrap();
            check(Pool2dBackward::variants(), |name| {
                near(Case::new::<f32>(op.clone().variant(name)).given(&x).given(&dy), &want)
            });
        }
    }
}

#[test]
fn long_lines_of_images() {
    for &n in sample(&LENGTHS, 1) {
        let images = [Image::grey([1, n]), Image::grey([n, 1]), Image::grey([8, n / 8]), Image::grey([n / 8, 8])];
        for &image in sample(&images, 1) {
            let x = ones(image.h * image.w);
            for &radius in sample(&[127, 1], 1) {
                check(Blur::variants(), |name| {
                    near(Case::new::<f32>(Blur::new(image, radius).variant(name)).given(&x), &x)
                });
            }
            check(Gaussian::variants(), |name| {
                near(Case::new::<f32>(Gaussian::new(image, 1.0).variant(name)).given(&x), &x)
            });
            check(Sobel::variants(), |name| {
                near(Case::new::<f32>(Sobel::new(image).variant(name)).given(&x), &vec![0.0; x.len()])
            });
            let steps: Vec<u8> = (0..x.len()).map(|i| (i % 2) as u8).collect();
            let op = Equalize::new(image);
            let want = reference::equalize(&op, &steps).unwrap();
            let bound = vec![0.0; want.len()];
            check(Equalize::variants(), |name| {
                Case::new::<u8>(Equalize::new(image).variant(name))
                    .given(&steps)
                    .near::<u8>(want.clone(), bound.clone())
            });
        }
    }
}
