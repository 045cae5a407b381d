//! Every variant of `BatchNorm` against the reference.

use super::training::{check, names, random, refusal};
use crate::support::{devices, gpu};
use tilework::nn::BatchNorm;
use tilework::reference::{batch_norm, batch_norm_bound};
use tilework::{Activation, ErrorKind};

#[test]
fn batch_norm_matches_reference_for_planes_of_every_size() {
    for device in devices() {
        for shape in [[2, 3, 8, 8], [1, 5, 7, 9], [3, 1, 1, 1], [2, 4, 1, 2]] {
            for activation in Activation::ALL {
                let c = shape[1];
                let x = random::<f32>(1, shape.iter().product());
                let [mean, gamma, beta] = [2, 3, 4].map(|seed| random::<f32>(seed, c));
                let variance: Vec<f32> = random::<f32>(5, c).iter().map(|v| v.abs() + 0.1).collect();
                let op = BatchNorm::new(shape).eps(1e-3).activation(activation);
                let channels: [&[f32]; 4] = [&mean, &variance, &gamma, &beta];
                let (want, bound) = ([batch_norm(&op, &x, channels)], [batch_norm_bound(&op, &x, channels)]);
                for variant in names(BatchNorm::variants()) {
                    let given: [&[f32]; 5] = [&x, &mean, &variance, &gamma, &beta];
                    let what = format!("{shape:?} {}", activation.name());
                    check(device, &what, &op.clone().variant(variant), &given, &want, &bound);
                }
            }
        }
    }
}

#[test]
fn batch_norm_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let op = BatchNorm::new([1, 2, 3, 4]);
    assert_eq!(refusal::<f32>(gpu, &op.clone().eps(f32::NAN)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &op.variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &BatchNorm::new([0, 2, 3, 4])), ErrorKind::Shape);
    assert_eq!(refusal::<f32>(gpu, &BatchNorm::new([usize::MAX, 2, 3, 4])), ErrorKind::TooLarge);
}
