//! `Cast` against the reference.

use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::quantize::Cast;
use tilework::reference::cast;

fn run<T: Sample, R: Sample>(device: &Device, x: &[T]) -> Vec<R>
where
    Cast: Op<T>,
{
    let gpu = &device.gpu;
    let input = gpu.upload(x).unwrap();
    // Elements after the result are kept.
    let output = gpu.upload(&vec![R::from_f64(7.0); x.len() + 3]).unwrap();
    let mut rec = gpu.recorder();
    Cast::new(x.len()).plan::<T>(gpu).unwrap().record(&mut rec, &input, output.slice(..x.len()).unwrap()).unwrap();
    rec.submit().unwrap();
    let mut got = output.read().unwrap();
    assert_eq!(got.split_off(x.len()), [R::from_f64(7.0); 3], "{}", device.label);
    got
}

#[test]
fn every_f16_survives_a_round_trip() {
    let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    for device in devices() {
        let singles = run::<f16, f32>(device, &halves);
        for (got, half) in singles.iter().zip(&halves) {
            let flushed = half.is_normal() || *got != 0.0;
            let same = got.to_bits() == half.to_f32().to_bits() || got.is_nan() && half.is_nan();
            assert!(same || !flushed, "{}: {half:?} became {got}", device.label);
        }
        let exact = cast::<f16, f32>(&halves);
        for (got, half) in run::<f32, f16>(device, &exact).iter().zip(&halves) {
            assert!(got.to_bits() == half.to_bits() || got.is_nan() && half.is_nan(), "{}: {half:?}", device.label);
        }
    }
}

#[test]
fn f32_rounds_to_the_nearest_f16() {
    let mut random = Random::new(2);
    for device in devices() {
        for n in [0, 1, 2, 3, 5, 9999, 10_000] {
            let mut x = random.any::<f32>(n);
            for x in x.iter_mut().skip(n / 2) {
                *x = (random.unit() * 70_000.0) as f32;
            }
            let want = cast::<f32, f16>(&x);
            for ((got, want), x) in run::<f32, f16>(device, &x).iter().zip(&want).zip(&x) {
                let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                assert!(same, "{}: {x} became {got:?}, not {want:?}", device.label);
            }
        }
    }
}

#[test]
fn rejects_invalid_arguments() {
    let profile = DeviceProfile::webgpu_defaults();
    let kind = |op: Cast| Op::<f32>::lower(&op, &profile).unwrap_err().kind();
    assert_eq!(kind(Cast::new(4).variant("fastest")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Cast::new(1 << 27)), ErrorKind::TooLarge);
    let Some(gpu) = gpu() else { return };
    let (x, y) = (gpu.upload(&[0f32; 6]).unwrap(), gpu.alloc::<f16>(5).unwrap());
    let plan = Cast::new(6).plan::<f32>(gpu).unwrap();
    assert_eq!(plan.record(&mut gpu.recorder(), &x, &y).unwrap_err().kind(), ErrorKind::Shape);
}
