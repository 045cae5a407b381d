//! `Dequantize` against the reference.

use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::quantize::{Code, Dequantize, Scales};
use tilework::reference::{dequantize, dequantize_bound};

fn check<Q: Code + Sample, T: Sample>(device: &Device, op: &Dequantize<Q>, (len, spans): (usize, usize))
where
    Dequantize<Q>: Op<T>,
{
    let mut random = Random::new(len as u64);
    let (x, scale) = (random.elements::<Q>(len), random.elements::<f32>(spans));
    let gpu = &device.gpu;
    let (input, scales) = (gpu.upload(&x).unwrap(), gpu.upload(&scale).unwrap());
    // Elements after the result are kept.
    let output = gpu.upload(&vec![T::from_f64(7.0); len + 3]).unwrap();
    let mut rec = gpu.recorder();
    op.plan::<T>(gpu).unwrap().record(&mut rec, &input, &scales, output.slice(..len).unwrap()).unwrap();
    rec.submit().unwrap();
    let mut got = output.read().unwrap();
    let what = format!("{}: {} {op:?}", device.label, T::DTYPE);
    assert_eq!(got.split_off(len), [T::from_f64(7.0); 3], "{what}");
    let want = dequantize::<Q, T>(op, &x, &scale);
    assert_close(&what, &numbers(&got), &numbers(&want), &dequantize_bound::<Q, T>(op, &x, &scale));
}

#[test]
fn matches_reference_for_rows_groups_and_tensors() {
    for device in devices() {
        for (rows, n, scales, spans) in [
            (3, 8, Scales::Row, 3),
            (5, 3, Scales::Row, 5),
            (1000, 6, Scales::Row, 1000),
            (3, 256, Scales::Group(64), 12),
            (2, 99, Scales::Group(33), 6),
            (7, 33, Scales::Tensor, 1),
            (300, 9, Scales::Row, 300),
        ] {
            let (int8, fp8) = (Dequantize::<i8>::new(rows, n), Dequantize::<u8>::new(rows, n));
            check::<i8, f32>(device, &int8.clone().scales(scales), (rows * n, spans));
            if device.main {
                check::<i8, f16>(device, &int8.scales(scales), (rows * n, spans));
                check::<u8, f32>(device, &fp8.clone().scales(scales), (rows * n, spans));
            }
            check::<u8, f16>(device, &fp8.scales(scales), (rows * n, spans));
        }
    }
}

#[test]
fn empty_input_returns_empty() {
    for device in devices() {
        check::<i8, f32>(device, &Dequantize::new(0, 5), (0, 0));
        check::<u8, f16>(device, &Dequantize::new(5, 0), (0, 5));
    }
}

#[test]
fn rejects_invalid_arguments() {
    let profile = DeviceProfile::webgpu_defaults();
    let kind = |op: Dequantize<i8>| Op::<f32>::lower(&op, &profile).unwrap_err().kind();
    assert_eq!(kind(Dequantize::new(2, 100).scales(Scales::Group(64))), ErrorKind::InvalidArgument);
    assert_eq!(kind(Dequantize::new(2, 512).scales(Scales::Group(256))), ErrorKind::InvalidArgument);
    assert_eq!(kind(Dequantize::new(2, 8).variant("fastest")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Dequantize::new(1 << 14, 1 << 14)), ErrorKind::TooLarge);
    assert_eq!(kind(Dequantize::new(usize::MAX, 2)), ErrorKind::TooLarge);
    let Some(gpu) = gpu() else { return };
    let (x, scale) = (gpu.upload(&[0i8; 6]).unwrap(), gpu.upload(&[1f32; 3]).unwrap());
    let output = gpu.alloc::<f32>(6).unwrap();
    let plan = Dequantize::<i8>::new(2, 3).plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    assert_eq!(plan.record(&mut rec, &x, &scale, &output).unwrap_err().kind(), ErrorKind::Shape);
}
