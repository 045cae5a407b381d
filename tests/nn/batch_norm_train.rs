//! Every variant of `BatchNormTrain` against the reference.

use super::training::{check, names, random, refusal};
use crate::support::{devices, gpu};
use tilework::ErrorKind;
use tilework::nn::{BatchNormBackward, BatchNormTrain};
use tilework::reference::{batch_norm_backward, batch_norm_backward_bound, batch_norm_train, batch_norm_train_bound};

/// Planes of vec4s and not, of one cell, one part and several of a channel, many channels.
pub(crate) const SHAPES: [[usize; 4]; 7] =
    [[2, 3, 8, 8], [4, 5, 7, 9], [300, 2, 1, 1], [3, 4, 1, 2], [5, 2, 60, 64], [3, 1, 101, 67], [2, 3000, 2, 2]];

#[test]
fn batch_norm_train_matches_reference_for_every_shape() {
    for device in devices() {
        for shape in SHAPES {
            let c = shape[1];
            let x = random::<f32>(1, shape.iter().product());
            let [gamma, beta, mean] = [2, 3, 4].map(|seed| random::<f32>(seed, c));
            let variance: Vec<f32> = random::<f32>(5, c).iter().map(|v| v.abs()).collect();
            let channels: [&[f32]; 4] = [&gamma, &beta, &mean, &variance];
            for op in [BatchNormTrain::new(shape), BatchNormTrain::new(shape).eps(0.1).momentum(1.0).population()] {
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
fn tiles_that_never_post_change_nothing() {
    // Several tiles of vec4s, and of single elements, the last of them short.
    for device in devices() {
        for shape in [[6, 2, 80, 80], [6, 1, 101, 67]] {
            let x = random::<f32>(1, shape.iter().product());
            let channels = [2, 3, 4, 5].map(|seed| random::<f32>(seed, shape[1]).iter().map(|v| v.abs()).collect());
            let [gamma, beta, mean, variance]: [Vec<f32>; 4] = channels;
            let op = BatchNormTrain::new(shape);
            let lists: [&[f32]; 4] = [&gamma, &beta, &mean, &variance];
            let (want, bound) = (batch_norm_train(&op, &x, lists), batch_norm_train_bound(&op, &x, lists));
            let given: [&[f32]; 5] = [&x, &gamma, &beta, &mean, &variance];
            check(device, &format!("{shape:?}"), &op.variant("resident").leave_out_posts(), &given, &want, &bound);
            let (op, dy) = (BatchNormBackward::new(shape), random::<f32>(6, x.len()));
            let want = batch_norm_backward(&op, &x, &gamma, &dy);
            let bound = batch_norm_backward_bound(&op, &x, &gamma, &dy);
            let given: [&[f32]; 3] = [&x, &gamma, &dy];
            check(device, &format!("{shape:?}"), &op.variant("resident").leave_out_posts(), &given, &want, &bound);
        }
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
    // More than 200 tiles.
    let large = BatchNormTrain::new([8, 1, 1024, 1024]).variant("resident");
    assert_eq!(refusal::<f32>(gpu, &large), ErrorKind::Unsupported);
    assert_eq!(refusal::<f32>(gpu, &BatchNormTrain::new([usize::MAX, 2, 3, 4])), ErrorKind::TooLarge);
}
