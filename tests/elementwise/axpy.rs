//! Every variant of `Axpy` against the reference.

use crate::support::{Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::reference::{axpy, axpy_bound};
use tilework::{DType, Element, ErrorKind, Result};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Axpy::variants().iter().map(|v| v.name))
}

fn run<T: Element>(gpu: &Gpu, op: &Axpy, x: &[T], y: &[T]) -> Result<Vec<T>> {
    let (x, y) = (gpu.upload(x)?, gpu.upload(y)?);
    let mut rec = gpu.recorder();
    op.plan::<T>(gpu)?.record(&mut rec, &x, &y)?;
    rec.submit()?;
    y.read()
}

/// Takes alpha from an operand, of f32 for the floats.
fn run_given<T: Element>(gpu: &Gpu, variant: &str, alpha: f64, x: &[T], y: &[T]) -> Result<Vec<T>> {
    let (x, y) = (gpu.upload(x)?, gpu.upload(y)?);
    let plan = Axpy::new(x.len(), 1.0).with_alpha().variant(variant).plan::<T>(gpu)?;
    let mut rec = gpu.recorder();
    match T::DTYPE {
        DType::I32 => plan.with_alpha(&gpu.upload(&[alpha as i32])?).record(&mut rec, &x, &y)?,
        DType::U32 => plan.with_alpha(&gpu.upload(&[alpha as u32])?).record(&mut rec, &x, &y)?,
        _ => plan.with_alpha(&gpu.upload(&[alpha as f32])?).record(&mut rec, &x, &y)?,
    }
    rec.submit()?;
    y.read()
}

/// Every pair of extremes, then any bits, then numbers in [-1, 1), with each factor.
fn check_factors<T: Sample>(seed: u64, factors: &[f64]) {
    let mut random = Random::new(seed);
    let extremes = T::extremes();
    let mut x: Vec<T> = extremes.iter().flat_map(|&x| vec![x; extremes.len()]).collect();
    let mut y = extremes.repeat(extremes.len());
    for side in [&mut x, &mut y] {
        side.extend(random.any::<T>(5_000));
        side.extend(random.elements::<T>(5_001));
    }
    for &alpha in factors {
        let mut want = y.clone();
        axpy(alpha, &x, &mut want).unwrap();
        let bound = axpy_bound(alpha, &x, &y).unwrap();
        for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
            let what = format!("{}: {alpha} x + y of {} {}, {variant}", device.label, x.len(), T::DTYPE);
            let got = run(&device.gpu, &Axpy::new(x.len(), alpha).variant(variant), &x, &y).unwrap();
            assert_close(&what, &numbers(&got), &numbers(&want), &bound);
            let got = run_given(&device.gpu, variant, alpha, &x, &y).unwrap();
            assert_close(&what, &numbers(&got), &numbers(&want), &bound);
        }
    }
}

#[test]
fn floats_match_reference_within_two_roundings() {
    let factors = [1.0, 0.1, -2.5, 0.0, 3e20, 1e-40, f64::INFINITY, f64::NAN];
    check_factors::<f32>(1, &factors);
    check_factors::<f16>(2, &factors);
}

#[test]
fn integers_match_reference_and_wrap() {
    check_factors::<i32>(3, &[1.0, -3.0, 0.0, 65_537.0, f64::from(i32::MIN)]);
    check_factors::<u32>(4, &[1.0, 3.0, 0.0, 65_537.0, f64::from(u32::MAX)]);
}

#[test]
fn operands_larger_than_one_binding_are_split() {
    // WebGPU's default limits: 128 MiB per binding, 256 MiB per buffer.
    let Some(device) = devices().iter().find(|d| d.label.contains("WebGPU")) else { return };
    let gpu = &device.gpu;
    let n = (128 << 20) / 4 + 64;
    let y = gpu.upload(&vec![5u32; n]).unwrap();
    {
        let x = gpu.upload(&(0..n as u32).collect::<Vec<_>>()).unwrap();
        gpu.axpy(3.0, &x, &y).unwrap();
    }
    assert!((0u32..).zip(y.read().unwrap()).all(|(i, y)| y == i.wrapping_mul(3) + 5));
    drop(y);
    gpu.trim();
}

#[test]
fn rejects_mismatched_buffers_and_factors() {
    let Some(gpu) = gpu() else { return };
    let (x, y) = (gpu.upload(&[1, 2, 3]).unwrap(), gpu.upload(&[1, 2]).unwrap());
    assert_eq!(gpu.axpy(2.0, &x, &y).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(gpu.axpy(2.0, &x, &x).unwrap_err().kind(), ErrorKind::Aliasing);
    assert_eq!(gpu.axpy(0.5, &x, &x).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn the_one_line_call_adds_in_place() {
    for device in devices() {
        let gpu = &device.gpu;
        let (x, y) = (gpu.upload(&[1.0f32, -2.0]).unwrap(), gpu.upload(&[10.0f32, 10.0]).unwrap());
        gpu.axpy(0.25, &x, &y).unwrap();
        assert_eq!(y.read().unwrap(), [10.25, 9.5]);
    }
}
