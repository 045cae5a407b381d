//! `Asum` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{asum, asum_bound};

fn check<T: Sample>(device: &Device, x: &[T])
where
    Asum: Op<T>,
{
    let got = device.gpu.asum(&device.gpu.upload(x).unwrap()).unwrap().read().unwrap();
    let want = numbers(&[T::from_f64(asum(x))]);
    let bound = asum_bound(x) + (want[0] - asum(x)).abs();
    let bound = if bound.is_nan() { 0.0 } else { bound };
    assert_close(&format!("{}: {} {}", device.label, x.len(), T::DTYPE), &numbers(&got), &want, &[bound]);
}

#[test]
fn asum_matches_reference_for_every_length() {
    let mut random = Random::new(3);
    for device in devices() {
        for n in [1, 3, 255, 1000, 4097, 70_001] {
            check(device, &random.elements::<f32>(n));
            check(device, &random.elements::<f16>(n));
        }
        check::<f32>(device, &[]);
    }
}

#[test]
fn asum_of_special_numbers_is_as_documented() {
    for device in devices() {
        check(device, &[f32::INFINITY, -1.0]);
        check(device, &[f32::NAN, -1.0]);
    }
}

#[test]
fn asum_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Asum::new(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Asum::new(usize::MAX)), ErrorKind::TooLarge);
}
