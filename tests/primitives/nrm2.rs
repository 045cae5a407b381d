//! `Nrm2` against the reference.

use super::asum::{every_length, near};
use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{nrm2, nrm2_bound};

fn check<T: Sample>(device: &Device, x: &[T])
where
    Nrm2: Op<T>,
{
    near(device, x, &device.gpu.nrm2(&device.gpu.upload(x).unwrap()).unwrap(), nrm2(x), nrm2_bound(x));
}

#[test]
fn nrm2_matches_reference_for_every_length() {
    every_length!(check);
}

#[test]
fn nrm2_of_special_numbers_is_as_documented() {
    for device in devices() {
        // Squares that overflow, underflow, or both; single numbers at the borders of the three sums.
        for x in [
            &[3e38f32, 1e38, 1.0][..],
            &[1e-30, 2e-30],
            &[1e-30, 1e30],
            &[f32::INFINITY, 1.0],
            &[f32::NAN, f32::INFINITY],
        ] {
            check(device, x);
        }
        for e in [-40, -41, -63, 39, 40, 41, 127, -126] {
            check(device, &[2f32.powi(e), -2f32.powi(e) * 0.75]);
        }
        check(device, &vec![2f32.powi(60); 5000]);
    }
}

#[test]
fn nrm2_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Nrm2::new(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Nrm2::new(usize::MAX)), ErrorKind::TooLarge);
}
