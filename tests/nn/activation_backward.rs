//! Every variant of `ActivationBackward` against the reference.

use super::training::{check, names, random, refusal};
use crate::support::{Sample, devices, gpu};
use half::f16;
use tilework::nn::ActivationBackward;
use tilework::program::Op;
use tilework::reference::{activation_backward, activation_backward_bound};
use tilework::{Activation, DType, ErrorKind};

fn check_all<T: Sample>(value: &[T], dy: &[T])
where
    ActivationBackward: Op<T>,
{
    for activation in Activation::ALL {
        let want = [activation_backward(activation, value, dy)];
        let bound = [activation_backward_bound(activation, value, dy)];
        for device in devices().iter().filter(|d| d.main || T::DTYPE == DType::F32) {
            let all = if device.main && T::DTYPE == DType::F32 { usize::MAX } else { 1 };
            for variant in names(ActivationBackward::variants()).take(all) {
                let op = ActivationBackward::new(activation, value.len()).variant(variant);
                let what = format!("{} {variant}", activation.name());
                check(device, &what, &op, &[value, dy], &want, &bound);
            }
        }
    }
}

#[test]
fn activation_backward_matches_reference_at_every_magnitude() {
    // Between -1 and 1, further out for GELU, and the extremes.
    let value: Vec<f32> = (-600..600).map(|i| i as f32 * 0.01).chain([0.0, -0.0, 100.0, -100.0]).collect();
    check_all(&value, &random::<f32>(1, value.len()));
    let halves: Vec<f16> = value.iter().map(|x| f16::from_f32(*x)).collect();
    check_all(&halves, &random::<f16>(2, halves.len()));
    check_all::<f32>(&[], &[]);
}

#[test]
fn activation_backward_of_non_finite_values_is_as_documented() {
    let value = [f32::INFINITY, f32::NEG_INFINITY];
    for device in devices() {
        let op = ActivationBackward::new(Activation::Gelu, 2);
        check(device, "ends", &op, &[&value, &[2.0, 2.0]], &[vec![2.0, 0.0]], &[vec![0.0; 2]]);
        let nan = [f32::NAN; 1];
        for activation in [Activation::Sigmoid, Activation::Tanh, Activation::Gelu] {
            let op = ActivationBackward::new(activation, 1);
            check(device, "NaN", &op, &[&nan, &[2.0]], &[vec![f32::NAN]], &[vec![0.0]]);
        }
        let op = ActivationBackward::new(Activation::Relu, 1);
        check(device, "NaN", &op, &[&nan, &[2.0]], &[vec![2.0]], &[vec![0.0]]);
    }
}

#[test]
fn activation_backward_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let op = ActivationBackward::new(Activation::Relu, 8);
    assert_eq!(refusal::<f32>(gpu, &op.variant("fast")), ErrorKind::InvalidArgument);
    let op = ActivationBackward::new(Activation::Relu, usize::MAX);
    assert_eq!(refusal::<f32>(gpu, &op), ErrorKind::TooLarge);
}
