//! `Iamin` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::iamin;

fn check<T: Sample>(device: &Device, x: &[T])
where
    Iamin: Op<T>,
{
    let got = device.gpu.iamin(&device.gpu.upload(x).unwrap()).unwrap().read().unwrap();
    assert_eq!(got, [iamin(x)], "{}: {} {}", device.label, x.len(), T::DTYPE);
}

#[test]
fn iamin_matches_reference_for_every_length() {
    let mut random = Random::new(3);
    for device in devices() {
        for n in [1, 3, 255, 1000, 4097, 70_001] {
            check(device, &random.elements::<f32>(n));
            check(device, &random.elements::<f16>(n));
        }
    }
}

#[test]
fn iamin_of_special_numbers_is_as_documented() {
    for device in devices() {
        check(device, &[1.0f32, -3.0, 3.0, f32::NEG_INFINITY, f32::INFINITY]);
        check(device, &[1.0f32, f32::NAN, f32::INFINITY, f32::NAN]);
        check(device, &[0.0f32, -0.0, 0.0]);
        check(device, &vec![0.0f32; 5000]);
    }
}

#[test]
fn iamin_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Iamin::new(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Iamin::new(usize::MAX)), ErrorKind::TooLarge);
    assert_eq!(refusal::<f32>(gpu, &Iamin::new(0)), ErrorKind::Shape);
}
