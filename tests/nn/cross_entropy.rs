//! Every variant of `CrossEntropy` against the reference.

use super::training::{Given, names, random, refusal, run};
use crate::support::{Device, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::nn::CrossEntropy;
use tilework::reference::{cross_entropy, cross_entropy_bound};

fn check(device: &Device, classes: usize, logits: &[f32], labels: &[u32]) {
    let (losses, mean, gradient) = cross_entropy(classes, logits, labels);
    let (of_losses, of_mean, of_gradient) = cross_entropy_bound(classes, logits, labels);
    let (want, bound) = ([losses, vec![mean], gradient], [of_losses, vec![of_mean], of_gradient]);
    let given = [Given::Floats(logits), Given::Labels(labels)];
    for variant in names(CrossEntropy::variants()) {
        let op = CrossEntropy::new(labels.len(), classes).variant(variant);
        let got = run(&device.gpu, &op.clone().with_gradient(), &given);
        for (i, ((got, want), bound)) in got.iter().zip(&want).zip(&bound).enumerate() {
            let what = format!("{}: {} x {classes}, result {i}", device.label, labels.len());
            assert_close(&what, &numbers(got), &numbers(want), bound);
        }
        // Without the gradient, the same bits.
        let alone = run(&device.gpu, &op, &given);
        assert!(alone.iter().zip(&got).all(|(a, b)| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())));
    }
}

fn labels(rows: usize, classes: usize) -> Vec<u32> {
    (0..rows).map(|i| (i * 7919 % classes) as u32).collect()
}

#[test]
fn cross_entropy_matches_reference_for_any_number_of_classes() {
    for device in devices() {
        for (rows, classes) in [(1, 1), (5, 2), (64, 10), (3, 33), (7, 1000), (2, 5000), (1000, 3)] {
            let logits: Vec<f32> = random::<f32>(1, rows * classes).iter().map(|x| 8.0 * x).collect();
            check(device, classes, &logits, &labels(rows, classes));
        }
    }
}

#[test]
fn cross_entropy_of_large_logits_and_invalid_labels_is_as_documented() {
    for device in devices() {
        let inf = f32::INFINITY;
        check(device, 3, &[1000.0, 999.0, -inf, -2000.0, -2000.5, -2001.0], &[1, 2]);
        check(device, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[1, 3]);
        check(device, 3, &[1.0, f32::NAN, 3.0, 4.0, 5.0, 6.0], &[0, u32::MAX]);
        check(device, 3, &[-inf, -inf, -inf, 1.0, inf, 2.0], &[1, 0]);
        check(device, 1, &[0.5, -inf], &[0, 0]);
    }
}

#[test]
fn cross_entropy_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &CrossEntropy::new(0, 4)), ErrorKind::Shape);
    assert_eq!(refusal::<f32>(gpu, &CrossEntropy::new(4, 0).with_gradient()), ErrorKind::Shape);
    assert_eq!(refusal::<f32>(gpu, &CrossEntropy::new(4, 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &CrossEntropy::new(usize::MAX, 4)), ErrorKind::TooLarge);
    // More loop iterations than some drivers run.
    assert_eq!(refusal::<f32>(gpu, &CrossEntropy::new(1, 6_000_000)), ErrorKind::TooLarge);
}
