//! Every variant of `BiasBackward` against the reference.

use super::training::{check, names, random, refusal};
use crate::support::{devices, gpu};
use tilework::ErrorKind;
use tilework::nn::BiasBackward;
use tilework::reference::{bias_backward, bias_backward_bound};

#[test]
fn bias_backward_matches_reference_for_matrices_and_planes() {
    let shapes = [
        (1, 1, 1),
        (3, 5, 1),
        (64, 300, 1),
        (7, 3, 25),
        (2, 8, 64),
        (5000, 12, 1),
        (5000, 7, 1),
        (0, 6, 1),
        (0, 8, 4),
        (4, 0, 3),
    ];
    for device in devices() {
        for (n, channels, plane) in shapes {
            let dy = random::<f32>(n as u64, n * channels * plane);
            let want = [bias_backward(channels, plane, &dy)];
            let bound = [bias_backward_bound(channels, plane, &dy)];
            for variant in names(BiasBackward::variants()) {
                let op = BiasBackward::new([n, channels, plane]).variant(variant);
                check(device, &format!("{n} x {channels} x {plane}"), &op, &[&dy], &want, &bound);
            }
        }
    }
}

#[test]
fn bias_backward_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &BiasBackward::new([2, 2, 2]).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &BiasBackward::new([usize::MAX, 2, 1])), ErrorKind::TooLarge);
}
