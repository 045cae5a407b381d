//! Every variant of `BatchNormBackward` against the reference.

use super::batch_norm_train::SHAPES;
use super::training::{check, names, random, refusal};
use crate::support::{devices, gpu};
use tilework::ErrorKind;
use tilework::nn::BatchNormBackward;
use tilework::reference::{batch_norm_backward, batch_norm_backward_bound};

#[test]
fn batch_norm_backward_matches_reference_for_every_shape() {
    for device in devices() {
        for shape in SHAPES {
            let len = shape.iter().product();
            let (x, gamma, dy) = (random::<f32>(1, len), random::<f32>(2, shape[1]), random::<f32>(3, len));
            let op = BatchNormBackward::new(shape).eps(1e-3);
            let want = batch_norm_backward(&op, &x, &gamma, &dy);
            let bound = batch_norm_backward_bound(&op, &x, &gamma, &dy);
            for variant in names(BatchNormBackward::variants()) {
                let given: [&[f32]; 3] = [&x, &gamma, &dy];
                check(device, &format!("{shape:?}"), &op.clone().variant(variant), &given, &want, &bound);
            }
        }
    }
}

#[test]
fn batch_norm_backward_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let op = BatchNormBackward::new([2, 2, 3, 4]);
    for bad in [op.clone().eps(f32::INFINITY), op.variant("fast")] {
        assert_eq!(refusal::<f32>(gpu, &bad), ErrorKind::InvalidArgument, "{bad:?}");
    }
    assert_eq!(refusal::<f32>(gpu, &BatchNormBackward::new([2, 2, 3, 0])), ErrorKind::Shape);
    assert_eq!(refusal::<f32>(gpu, &BatchNormBackward::new([usize::MAX, 2, 3, 4])), ErrorKind::TooLarge);
}
