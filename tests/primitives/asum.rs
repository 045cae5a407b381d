//! `Asum` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{asum, asum_bound};

/// Compares a sum over `x` with `want` before its rounding to `T`, within `bound` before that.
pub(super) fn near<T: Sample>(device: &Device, x: &[T], got: &Buffer<T>, want: f64, bound: f64) {
    let rounded = numbers(&[T::from_f64(want)]);
    let bound = bound + (rounded[0] - want).abs();
    let bound = if bound.is_nan() { 0.0 } else { bound };
    let what = format!("{}: {} {}", device.label, x.len(), T::DTYPE);
    assert_close(&what, &numbers(&got.read().unwrap()), &rounded, &[bound]);
}

/// Calls `check` with lists of every length and type.
macro_rules! every_length {
    ($check:ident) => {
        let mut random = Random::new(3);
        for device in devices() {
            for n in [1, 3, 255, 1000, 4097, 70_001] {
                $check(device, &random.elements::<f32>(n));
                $check(device, &random.elements::<f16>(n));
            }
            $check::<f32>(device, &[]);
        }
    };
}
pub(super) use every_length;

fn check<T: Sample>(device: &Device, x: &[T])
where
    Asum: Op<T>,
{
    near(device, x, &device.gpu.asum(&device.gpu.upload(x).unwrap()).unwrap(), asum(x), asum_bound(x));
}

#[test]
fn asum_matches_reference_for_every_length() {
    every_length!(check);
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
