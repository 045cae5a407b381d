//! `Dot` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{dot, dot_bound};

fn check<T: Sample>(device: &Device, x: &[T], y: &[T])
where
    Dot: Op<T>,
{
    let gpu = &device.gpu;
    let plan = Dot::new(x.len()).plan::<T>(gpu).unwrap();
    let result = gpu.upload(&[T::from_f64(1.0); 3]).unwrap();
    let (dx, dy) = (gpu.upload(x).unwrap(), gpu.upload(y).unwrap());
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &dx, &dy, result.slice(..1).unwrap()).unwrap();
    rec.submit().unwrap();
    let got = numbers(&result.read().unwrap());
    let want = numbers(&[T::from_f64(dot(x, y))]);
    let bound = dot_bound(x, y);
    let what = format!("{}: {} {}", device.label, x.len(), T::DTYPE);
    assert_close(&what, &got[..1], &want, &[bound]);
    assert_eq!(got[1..], [1.0; 2], "{what}: elements past the result");
}

#[test]
fn dot_matches_reference_for_every_length() {
    fn of<T: Sample>(device: &Device)
    where
        Dot: Op<T>,
    {
        let mut random = Random::new(3);
        for n in [0, 1, 3, 9, 1000, 4099, 70_001] {
            check::<T>(device, &random.elements(n), &random.elements(n));
        }
    }
    for device in devices() {
        of::<f32>(device);
        of::<f16>(device);
        of::<i32>(device);
        of::<u32>(device);
        check(device, &[f32::NAN, 1.0], &[1.0, 1.0]);
        check(device, &[f32::INFINITY, 1.0], &[0.0, 1.0]);
    }
}

#[test]
fn a_length_from_the_device_limits_both_vectors() {
    let (n, mut random) = (70_001, Random::new(4));
    let (x, y) = (random.elements::<f32>(n), random.elements::<f32>(n));
    for device in devices() {
        let gpu = &device.gpu;
        let (dx, dy, result) = (gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap(), gpu.alloc::<f32>(1).unwrap());
        let plan = Dot::new(n).counted().plan::<f32>(gpu).unwrap();
        for (length, there) in [(0, 0), (1, 1), (4099, 4099), (u32::MAX, n)] {
            let length = gpu.upload(&[length]).unwrap();
            let mut rec = gpu.recorder();
            plan.with_length(&length).record(&mut rec, &dx, &dy, &result).unwrap();
            rec.submit().unwrap();
            let (x, y) = (&x[..there], &y[..there]);
            let want = [dot(x, y) as f32 as f64];
            let what = format!("{}: {there}", device.label);
            assert_close(&what, &numbers(&result.read().unwrap()), &want, &[dot_bound(x, y)]);
        }
    }
}

#[test]
fn dot_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Dot::new(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Dot::new(usize::MAX)), ErrorKind::TooLarge);
    let (x, y) = (gpu.upload(&[1.0f32; 3]).unwrap(), gpu.upload(&[1.0f32; 4]).unwrap());
    assert_eq!(gpu.dot(&x, &y).unwrap_err().kind(), ErrorKind::Shape);
}
