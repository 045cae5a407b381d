//! Every variant of `Gaussian` against the reference.

use super::pixels::check;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::prelude::*;
use tilework::reference::{gaussian, gaussian_bound};
use tilework::{DType, ErrorKind};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Gaussian::variants().iter().map(|v| v.name))
}

/// Compares all variants that accept the op, and returns those that ran.
fn compare<T: Sample + Into<f64>>(device: &Device, op: &Gaussian, image: Image) -> Vec<&'static str> {
    let input = Random::new(image.w as u64).elements::<T>(image.h * image.w * image.channels);
    let (want, mut bound) = (gaussian(op, &input), gaussian_bound(op, &input));
    if !T::DTYPE.is_float() {
        // Rounded to the nearest.
        bound.iter_mut().for_each(|b| *b += 0.5);
    }
    if T::DTYPE == DType::F16 {
        bound.iter_mut().zip(&want).for_each(|(b, w)| *b += w.abs() / 2048.0 + 2f64.powi(-25));
    }
    let ran = names().filter(|variant| {
        let what = format!("{variant}, {op:?}, {}", T::DTYPE);
        check(device, &what, &op.clone().variant(variant), &input, (&want, &bound))
    });
    ran.collect()
}

fn compare_both(device: &Device, op: &Gaussian, image: Image) -> Vec<&'static str> {
    let ran = compare::<u8>(device, op, image);
    assert_eq!(compare::<f32>(device, op, image), ran);
    assert_eq!(compare::<f16>(device, op, image), ran);
    ran
}

#[test]
fn gaussian_accepts_large_radii_that_fit() {
    let Some(device) = devices().first() else { return };
    let image = Image::rgb([30, 21]);
    assert!(compare_both(device, &Gaussian::new(image, 8.0), image).contains(&"passes"));
    let far = Gaussian::new(image, 200.0);
    assert!(compare_both(device, &far, image).contains(&"passes"));
    assert!(compare_both(device, &far.boundary(Boundary::Wrap).radius(70), image).contains(&"passes"));
    // Tiles of fewer rows than the halo.
    let image = Image::grey([90, 40]);
    assert!(compare_both(device, &Gaussian::new(image, 3.0).radius(10), image).contains(&"fused"));
}

#[test]
fn gaussian_propagates_infinity_within_its_window() {
    let Some(device) = devices().first() else { return };
    let mut x = vec![1.0f32; 16 * 24];
    x[8 * 24 + 12] = f32::INFINITY;
    let op = Gaussian::new([16, 24], 1.0).radius(2);
    let (want, bound) = (gaussian(&op, &x), vec![1e-5; x.len()]);
    for variant in names() {
        assert!(check(device, variant, &op.clone().variant(variant), &x, (&want, &bound)));
    }
}

#[test]
fn gaussian_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Gaussian| op.plan::<u8>(gpu).unwrap_err().kind();
    for sigma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(kind(Gaussian::new([3, 3], sigma)), ErrorKind::InvalidArgument);
    }
    assert_eq!(kind(Gaussian::new([3, 3], 1e300)), ErrorKind::TooLarge);
    assert_eq!(kind(Gaussian::new([3, 3], 1.0).radius(usize::MAX)), ErrorKind::TooLarge);
    assert_eq!(kind(Gaussian::new([3, 3, 7], 1.0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Gaussian::new([3, 3], 1.0).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Gaussian::new([3, 3], 1.0).variant("register")), ErrorKind::Unsupported);
    assert_eq!(kind(Gaussian::new([1 << 20, 1 << 20], 1.0)), ErrorKind::TooLarge);
    assert_eq!(Gaussian::new([3, 3], 1.0).plan::<i32>(gpu).unwrap_err().kind(), ErrorKind::Unsupported);
    for image in [[0, 3], [3, 0], [0, 0]] {
        assert!(Gaussian::new(image, 1.0).plan::<u8>(gpu).unwrap().program().dispatches.is_empty());
    }
    // A very narrow Gaussian is one pixel.
    let x = gpu.upload(&[1.0f32, 2.0]).unwrap();
    assert_eq!(gpu.gaussian(&x, [1, 2], 1e-300).unwrap().read().unwrap(), [1.0, 2.0]);
}
