//! `Rotate` against the reference.

use super::reverse::{LENGTHS, bytes, made};
use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::rotate;

#[test]
fn rotate_matches_reference_for_every_length_type_and_distance() {
    fn of<T: Sample>(device: &Device)
    where
        Rotate: Op<T>,
    {
        for n in LENGTHS {
            let x = Random::new(n as u64).any::<T>(n);
            for by in [0, 1, 3, -1, n as i64, 1023, i64::MIN, i64::MAX] {
                let got = made(device, &Rotate::new(n, by), &x);
                assert_eq!(bytes(&got), bytes(&rotate(by, &x)), "{}: {n} {} by {by}", device.label, T::DTYPE);
            }
        }
    }
    for device in devices() {
        of::<f32>(device);
        of::<f16>(device);
        of::<u8>(device);
    }
}

#[test]
fn rotate_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Rotate::new(4, 1).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<u32>(gpu, &Rotate::new(usize::MAX, 1)), ErrorKind::TooLarge);
    for by in [i64::from(i32::MIN), 1 << 31] {
        assert_eq!(refusal::<f32>(gpu, &Rotate::new(4, by).counted()), ErrorKind::InvalidArgument);
    }
}
