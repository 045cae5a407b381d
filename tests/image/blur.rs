//! Every variant of `Blur` against the reference.

use super::pixels::check;
use crate::support::{Device, Random, Sample, devices, gpu};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{blur, blur_bound};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Blur::variants().iter().map(|v| v.name))
}

/// Compares all variants that accept the image and the radius, and returns those that ran.
fn compare<T: Sample>(device: &Device, image: Image, radius: usize, divide: Divide) -> Vec<&'static str> {
    let input = Random::new(image.w as u64).elements::<T>(image.h * image.w * image.channels);
    let op = Blur::new(image, radius).divide(divide);
    let (want, bound) = (blur(&op, &input), blur_bound(&op, &input));
    let ran = names().filter(|variant| {
        let what = format!("{variant}, {image:?}, radius {radius}, {divide:?}, {}", T::DTYPE);
        check(device, &what, &op.clone().variant(variant), &input, (&want, &bound))
    });
    ran.collect()
}

#[test]
fn blur_accepts_large_radii_that_fit() {
    let Some(device) = devices().first() else { return };
    assert!(compare::<u8>(device, Image::grey([60, 61]), 40, Divide::Inside).len() >= 3);
    assert!(compare::<u8>(device, Image::rgb([40, 44]), 300, Divide::Inside).len() >= 2);
    assert!(compare::<u8>(device, Image::grey([4, 5]), 1448, Divide::Window).len() >= 2);
    assert!(compare::<f32>(device, Image::rgb([30, 22]).planar(), 300, Divide::Window).len() >= 2);
}

#[test]
fn blur_of_white_is_white() {
    let Some(device) = devices().first() else { return };
    for radius in [0, 1, 3, 16] {
        for variant in names() {
            let op = Blur::new([5, 8], radius).variant(variant);
            check(device, &format!("{variant} {radius}"), &op, &[255u8; 40], (&[255.0; 40], &[0.0; 40]));
        }
    }
}

#[test]
fn blur_propagates_infinity_within_its_window() {
    let Some(device) = devices().first() else { return };
    let mut x = vec![1.0f32; 16 * 24];
    x[8 * 24 + 12] = f32::INFINITY;
    let op = Blur::new([16, 24], 2);
    let (want, bound) = (blur(&op, &x), vec![1e-6; x.len()]);
    for variant in names() {
        assert!(check(device, variant, &op.clone().variant(variant), &x, (&want, &bound)));
    }
}

#[test]
fn blur_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Blur| op.plan::<u8>(gpu).unwrap_err().kind();
    assert_eq!(kind(Blur::new([3, 3], 1).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Blur::new([3, 3, 0], 1)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Blur::new([3, 3, 5], 1)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Blur::new([3, 3], 1449)), ErrorKind::TooLarge);
    assert_eq!(kind(Blur::new([3, 3], usize::MAX)), ErrorKind::TooLarge);
    assert_eq!(kind(Blur::new([usize::MAX, 3], 1)), ErrorKind::TooLarge);
    assert_eq!(kind(Blur::new([1 << 20, 1 << 20], 1)), ErrorKind::TooLarge);
    assert_eq!(kind(Blur::new([3, 3], 500).variant("tiled")), ErrorKind::Unsupported);
    assert_eq!(kind(Blur::new([3, 4], 500).variant("register")), ErrorKind::Unsupported);
    assert_eq!(kind(Blur::new([3, 3], 1).variant("register")), ErrorKind::Unsupported);
    assert_eq!(Blur::new([3, 3], 1).plan::<u32>(gpu).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(Blur::new([0, 3], 1).plan::<u8>(gpu).unwrap().program().dispatches.is_empty());
    let nine = gpu.alloc::<u8>(9).unwrap();
    let plan = Blur::new([3, 3], 1).plan::<u8>(gpu).unwrap();
    let mut rec = gpu.recorder();
    assert_eq!(plan.record(&mut rec, &nine, &nine).unwrap_err().kind(), ErrorKind::Aliasing);
}
