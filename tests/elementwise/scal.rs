//! Every variant of `Scal` against the reference.

use crate::nn::training::refusal;
use crate::support::{Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::reference::{scal, scal_bound};
use tilework::{DType, ErrorKind};

fn check<T: Sample>(factors: &[f64]) {
    let mut random = Random::new(1);
    let x = [T::extremes(), random.any::<T>(5_000), random.elements::<T>(5_001)].concat();
    for (device, variant) in devices().iter().flat_map(|d| Scal::variants().iter().map(move |v| (d, v))) {
        let gpu = &device.gpu;
        for (&alpha, given) in factors.iter().zip([false, true].into_iter().cycle()) {
            let op = Scal::new(x.len(), if given { 1.0 } else { alpha }).variant(variant.name);
            let plan = op.when(given, Scal::with_alpha).plan::<T>(gpu).unwrap();
            let (there, mut rec) = (gpu.upload(&x).unwrap(), gpu.recorder());
            match (given, T::DTYPE) {
                (false, _) => plan.record(&mut rec, &there).unwrap(),
                (true, DType::I32) => {
                    plan.with_alpha(&gpu.upload(&[alpha as i32]).unwrap()).record(&mut rec, &there).unwrap();
                }
                (true, DType::U32) => {
                    plan.with_alpha(&gpu.upload(&[alpha as u32]).unwrap()).record(&mut rec, &there).unwrap();
                }
                (true, _) => {
                    plan.with_alpha(&gpu.upload(&[alpha as f32]).unwrap()).record(&mut rec, &there).unwrap();
                }
            }
            rec.submit().unwrap();
            let what = format!("{}: {alpha} x of {}, {}", device.label, T::DTYPE, variant.name);
            let (got, want) = (numbers(&there.read().unwrap()), numbers(&scal(alpha, &x)));
            assert_close(&what, &got, &want, &scal_bound(alpha, &x));
        }
    }
}

#[test]
fn multiples_match_the_reference() {
    check::<f32>(&[0.1, -2.5, 0.0, 3e20, f64::NAN]);
    check::<f16>(&[0.1, -2.5, 0.0]);
    check::<i32>(&[-3.0, 65_537.0]);
    check::<u32>(&[65_537.0, 3.0]);
}

#[test]
fn scal_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Scal::new(4, 1.0).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<u32>(gpu, &Scal::new(4, -1.0)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Scal::new(usize::MAX, 1.0)), ErrorKind::TooLarge);
    assert_eq!(refusal::<u8>(gpu, &Scal::new(4, 1.0)), ErrorKind::Unsupported);
    let plan = Scal::new(0, 2.0).incx(-5).plan::<f32>(gpu).unwrap();
    plan.record(&mut gpu.recorder(), &gpu.alloc::<f32>(0).unwrap()).unwrap();
}
