//! Every variant of `Sobel` against the reference.

use super::pixels::check;
use crate::support::{Device, Random, Sample, devices, gpu};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{sobel, sobel_bound};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Sobel::variants().iter().map(|v| v.name))
}

fn compare<T: Sample + Into<f64>>(device: &Device, image: Image, gradient: Gradient, scale: f64) {
    let input = Random::new(image.w as u64).elements::<T>(image.h * image.w * image.channels);
    let input: Vec<T> = input.into_iter().map(|x| T::from_f64((x.to_f64() * scale).floor())).collect();
    let op = Sobel::new(image).gradient(gradient);
    let (mut want, mut bound) = (sobel(&op, &input), sobel_bound(&op, &input));
    if !T::DTYPE.is_float() {
        want.iter_mut().for_each(|g| *g = g.abs().round().min(255.0));
        bound.fill(0.0);
    }
    for variant in names() {
        let what = format!("{variant}, {image:?}, {gradient:?}, {}", T::DTYPE);
        assert!(check(device, &what, &op.clone().variant(variant), &input, (&want, &bound)), "{what}");
    }
}

#[test]
fn sobel_saturates_in_u8() {
    let Some(device) = devices().first() else { return };
    compare::<u8>(device, Image::rgb([20, 20]), Gradient::Magnitude, 1.0);
}

#[test]
fn sobel_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Sobel| op.plan::<f32>(gpu).unwrap_err().kind();
    assert_eq!(kind(Sobel::new([3, 3]).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Sobel::new([3, 3, 0])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Sobel::new([1 << 20, 1 << 20])), ErrorKind::TooLarge);
    assert_eq!(Sobel::new([3, 3]).plan::<u32>(gpu).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(Sobel::new([0, 3]).plan::<u8>(gpu).unwrap().program().dispatches.is_empty());
}
