//! Every variant of `SquaredError` against the reference.

use super::training::{check, names, random, refusal};
use crate::support::{devices, gpu};
use tilework::ErrorKind;
use tilework::nn::SquaredError;
use tilework::reference::{squared_error, squared_error_bound};

#[test]
fn squared_error_matches_reference_at_any_length() {
    for device in devices() {
        for n in [1, 3, 64, 65, 1001, 20_000] {
            let (x, target) = (random::<f32>(1, n), random::<f32>(2, n));
            let ((mean, gradient), (of_mean, bound)) = (squared_error(&x, &target), squared_error_bound(&x, &target));
            for variant in names(SquaredError::variants()) {
                let op = SquaredError::new(n).variant(variant);
                let (want, bound) = ([vec![mean], gradient.clone()], [vec![of_mean], bound.clone()]);
                check(device, &format!("{n} {variant}"), &op, &[&x, &target], &[vec![mean]], &[vec![of_mean]]);
                check(device, &format!("{n} {variant}"), &op.with_gradient(), &[&x, &target], &want, &bound);
            }
        }
    }
}

#[test]
fn squared_error_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &SquaredError::new(0)), ErrorKind::Shape);
    assert_eq!(refusal::<f32>(gpu, &SquaredError::new(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &SquaredError::new(usize::MAX)), ErrorKind::TooLarge);
}
