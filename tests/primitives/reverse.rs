//! `Reverse` and `Rotate` against the references, through any op that makes one vector of another.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::reverse;

/// Runs the op with elements behind its output, and returns the output.
pub(super) fn made<T: Sample>(device: &Device, op: &impl Op<T>, x: &[T]) -> Vec<T> {
    let gpu = &device.gpu;
    let plan = op.plan::<T>(gpu).unwrap().into_executable();
    let before: Vec<T> = Random::new(8).any(x.len() + 3);
    let (dx, dy) = (gpu.upload(x).unwrap(), gpu.upload(&before).unwrap());
    let part = dy.slice(..x.len()).unwrap();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &[Slice::from(&dx).untyped(), part.untyped()]).unwrap();
    rec.submit().unwrap();
    let mut all = dy.read().unwrap();
    assert_eq!(bytes(&all[x.len()..]), bytes(&before[x.len()..]), "{}: behind {}", device.label, x.len());
    all.truncate(x.len());
    all
}

pub(super) fn bytes<T: Sample>(x: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(x).to_vec()
}

/// Lengths around words and workgroups.
pub(super) const LENGTHS: [usize; 8] = [0, 1, 2, 5, 255, 1024, 1027, 5001];

#[test]
fn reverse_matches_reference_for_every_length_and_type() {
    fn of<T: Sample>(device: &Device)
    where
        Reverse: Op<T>,
    {
        for n in LENGTHS {
            let x = Random::new(n as u64).any::<T>(n);
            let got = made(device, &Reverse::new(n), &x);
            assert_eq!(bytes(&got), bytes(&reverse(&x)), "{}: {n} {}", device.label, T::DTYPE);
        }
    }
    for device in devices() {
        of::<f32>(device);
        of::<f16>(device);
        of::<i32>(device);
        of::<u32>(device);
        of::<u8>(device);
        of::<i8>(device);
    }
}

#[test]
fn reverse_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Reverse::new(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<u8>(gpu, &Reverse::new(usize::MAX)), ErrorKind::TooLarge);
}
