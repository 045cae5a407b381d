//! Every variant of `BinaryCrossEntropy`, and extreme logits, against the reference.

use super::training::{check, names, random, refusal};
use crate::support::{devices, gpu};
use tilework::ErrorKind;
use tilework::nn::BinaryCrossEntropy;
use tilework::reference::{binary_cross_entropy, binary_cross_entropy_bound};

#[test]
fn binary_cross_entropy_matches_reference_at_any_length() {
    for device in devices() {
        for n in [1, 3, 64, 65, 1001, 20_000] {
            let x: Vec<f32> = random::<f32>(1, n).iter().map(|x| 30.0 * x).collect();
            let target: Vec<f32> = random::<f32>(2, n).iter().map(|t| t.abs()).collect();
            let ((mean, gradient), (of_mean, bound)) =
                (binary_cross_entropy(&x, &target), binary_cross_entropy_bound(&x, &target));
            for variant in names(BinaryCrossEntropy::variants()) {
                let op = BinaryCrossEntropy::new(n).variant(variant);
                let (want, bound) = ([vec![mean], gradient.clone()], [vec![of_mean], bound.clone()]);
                check(device, &format!("{n} {variant}"), &op, &[&x, &target], &[vec![mean]], &[vec![of_mean]]);
                check(device, &format!("{n} {variant}"), &op.with_gradient(), &[&x, &target], &want, &bound);
            }
        }
    }
}

#[test]
fn binary_cross_entropy_of_extreme_logits_is_their_limit() {
    let x = [1e-30f32, -1e-30, 90.0, -120.0, 3e38, f32::INFINITY, f32::NEG_INFINITY, 2.75, -2.8, 0.0];
    for device in devices() {
        for target in [0.0f32, 1.0, 0.5, -0.0] {
            for (x, target) in x.iter().map(|x| ([*x], [target])) {
                let ((mean, gradient), (of_mean, bound)) =
                    (binary_cross_entropy(&x, &target), binary_cross_entropy_bound(&x, &target));
                let op = BinaryCrossEntropy::new(1).with_gradient();
                let what = format!("{x:?} {target:?}");
                check(device, &what, &op, &[&x, &target], &[vec![mean], gradient], &[vec![of_mean], bound]);
            }
        }
        for (x, target) in [(f32::NAN, 0.5), (1.0, 1.1), (1.0, -1e-3), (1.0, f32::NAN), (1.0, f32::INFINITY)] {
            let op = BinaryCrossEntropy::new(2).with_gradient();
            let nan = vec![f32::NAN, binary_cross_entropy(&[0.0f32; 2], &[1.0, 1.0]).1[1]];
            let want = [vec![f32::NAN], nan];
            check(device, "NaN", &op, &[&[x, 0.0], &[target, 1.0]], &want, &[vec![0.0], vec![0.0, 1e-6]]);
        }
    }
}

#[test]
fn binary_cross_entropy_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &BinaryCrossEntropy::new(0)), ErrorKind::Shape);
    assert_eq!(refusal::<f32>(gpu, &BinaryCrossEntropy::new(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &BinaryCrossEntropy::new(usize::MAX)), ErrorKind::TooLarge);
}
