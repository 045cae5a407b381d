//! Every variant of `BatchNormTrain` against the reference.

use super::training::{check, names, random, refusal};
use crate::support::{devices, gpu};
use tilework::ErrorKind;
use tilework::nn::BatchNormTrain;
use tilework::reference::{batch_norm_train, batch_norm_train_bound};

/// Planes of vec4s and not, of one cell, one part and several of a channel, many channels.
pub(crate) const SHAPES: [[usize; 4]; 7] = [
    [2, 3, 8, 8],
    [4, 5, 7, 9],
    [300, 2, 1, 1],
    [3, 4, 1, 2],
    [5, 2, 60, 64],
    [3, 1, 101, 67],
    [2, 3000, 2, 2],
];

#[test]
fn batch_norm_train_matches_reference_for_every_shape() {
    for device in devices() {
        for shape in SHAPES {
            let c = shape[1];
            let x = random::<f32>(1, shape.iter().product());
            let [gamma, beta, mean] = [2, 3, 4].map(|seed| random::<f32>(seed, c));
            let variance: Vec<f32> = random::<f32>(5, c).iter().map(|v| v.abs()).collect();
            let channels: [&[f32]; 4] = [&gamma, &beta, &mean, &variance];
            for op in
                [BatchNormTrain::new(shape), BatchNormTrain::new(shape).eps(0.1).momentum(1.0).population()]
            {
                let want = batch_norm_train(&op, &x, channels);
                let bound = batch_norm_train_bound(&op, &x, channels);
                for variant in names(BatchNormTrain::variants()) {
                    let given: [&[f32]; 5] = [&x, &gamma, &beta, &mean, &variance];
                    check(device, &format!("{op:?}"), &op.clone().variant(variant), &given, &want, &bound);
                    // In place the running statistics come first.
                    let ([y, mean, variance], [of_y, of_mean, of_variance]) = (want.clone(), bound.clone());
                    let (want, bound) = ([mean, variance, y], [of_mean, of_variance, of_y]);
                    let op = op.clone().variant(variant).in_place();
                    check(device, &format!("{op:?}"), &op, &given, &want, &bound);
                }
            }
        }
    }
}

#[test]
fn a_mean_far_from_zero_keeps_the_variance() {
    for device in devices() {
        // Deviations of 1 about a mean of 10,000: squares alone would cancel.
        let x: Vec<f32> = (0..6000).map(|i| if i % 2 == 0 { 9999.0 } else { 10_001.0 }).collect();
        let op = BatchNormTrain::new([6, 1, 20, 50]).momentum(1.0).population();
        let want = [x.iter().map(|x| x - 1e4).collect(), vec![1e4], vec![1.0]];
        let bound = [vec![1e-4; 6000], vec![1e-3], vec![1e-4]];
        let lists: [&[f32]; 5] = [&x, &[1.0], &[0.0], &[5.0], &[5.0]];
        check(device, "far from zero", &op, &lists, &want, &bound);
    }
}

#[test]
fn batch_norm_train_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let op = BatchNormTrain::new([2, 2, 3, 4]);
    for bad in [
        op.clone().eps(f32::NAN),
        op.clone().eps(-1.0),
        op.clone().momentum(1.5),
        op.clone().momentum(f32::NAN),
        op.variant("fast"),
    ] {
        assert_eq!(refusal::<f32>(gpu, &bad), ErrorKind::InvalidArgument, "{bad:?}");
    }
    for shape in [[0, 2, 3, 4], [2, 0, 3, 4], [2, 2, 0, 4], [1, 5, 1, 1]] {
        assert_eq!(refusal::<f32>(gpu, &BatchNormTrain::new(shape)), ErrorKind::Shape, "{shape:?}");
    }
    assert_eq!(refusal::<f32>(gpu, &BatchNormTrain::new([usize::MAX, 2, 3, 4])), ErrorKind::TooLarge);
}
