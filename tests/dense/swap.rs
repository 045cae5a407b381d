//! `Swap` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::swap;

fn check<T: Sample>(device: &Device, n: usize)
where
    Swap: Op<T>,
{
    let (gpu, mut random) = (&device.gpu, Random::new(n as u64));
    let (x, y): (Vec<T>, Vec<T>) = (random.any(n + 1), random.any(n + 1));
    let (dx, dy) = (gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap());
    let mut rec = gpu.recorder();
    let plan = Swap::new(n).plan::<T>(gpu).unwrap();
    plan.record(&mut rec, dx.slice(..n).unwrap(), dy.slice(..n).unwrap()).unwrap();
    rec.submit().unwrap();
    let [want_x, want_y] = swap(&x[..n], &y[..n]);
    for (got, want, before) in [(dx, want_x, x), (dy, want_y, y)] {
        let want = [&want[..], &before[n..]].concat();
        let bytes = |x: &[T]| bytemuck::cast_slice::<T, u8>(x).to_vec();
        assert_eq!(bytes(&got.read().unwrap()), bytes(&want), "{}: {n} {}", device.label, T::DTYPE);
    }
}

#[test]
fn vectors_of_every_length_change_places() {
    for device in devices() {
        for n in [0, 1, 2, 511, 70_001] {
            check::<f32>(device, n);
            check::<f16>(device, n);
        }
        check::<u32>(device, 77);
    }
}

#[test]
fn swap_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Swap::new(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f16>(gpu, &Swap::new(usize::MAX)), ErrorKind::TooLarge);
    let (x, plan) = (gpu.alloc::<f32>(4).unwrap(), Swap::new(4).plan::<f32>(gpu).unwrap());
    assert_eq!(plan.record(&mut gpu.recorder(), &x, &x).unwrap_err().kind(), ErrorKind::Aliasing);
}
