//! Every variant of `Equalize` against the reference.

use super::pixels::check;
use crate::support::{Device, Sample, devices, gpu};
use half::f16;
use tilework::prelude::*;
use tilework::reference::{equalize, equalize_bound};
use tilework::{DType, ErrorKind};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Equalize::variants().iter().map(|v| v.name))
}

fn compare<T: Sample>(device: &Device, op: &Equalize, input: &[T]) {
    let (want, mut bound) = (equalize(op, input).unwrap(), equalize_bound(op, input).unwrap());
    if T::DTYPE == DType::F16 {
        // The bound is that in f32; an element then loses half a step.
        bound.iter_mut().zip(&want).for_each(|(bound, want)| *bound += 2f64.powi(-11) * want.abs());
    }
    for variant in names() {
        let what = format!("{variant}, {op:?}, {}", T::DTYPE);
        assert!(check(device, &what, &op.clone().variant(variant), input, (&want, &bound)), "{what}");
    }
}

#[test]
fn equalize_matches_reference_on_unusual_values() {
    let Some(device) = devices().first() else { return };
    let image = Image::grey([3, 5]);
    compare(device, &Equalize::new(image), &[9u8; 15]);
    compare(device, &Equalize::new(image), &[0u8; 15]);
    let mut two = [255u8; 15];
    two[7] = 0;
    compare(device, &Equalize::new(image), &two);
    // Outside the range, and NaN.
    let mut x: Vec<f32> = (0..15).map(|i| i as f32 - 3.0).collect();
    compare(device, &Equalize::new(image).range(-1.0, 9.0), &x);
    (x[2], x[5], x[6]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
    compare(device, &Equalize::new(image).range(-1.0, 9.0), &x);
    compare(device, &Equalize::new(image), &[5.0f32; 15]);
    // f16: an odd number of elements, and channels that share words.
    let halves: Vec<f16> = x.iter().map(|x| f16::from_f32(*x)).collect();
    compare(device, &Equalize::new(image).range(-1.0, 9.0), &halves);
    for image in [Image::rgb([5, 1]), Image::rgb([5, 1]).planar()] {
        compare(device, &Equalize::new(image).range(-1.0, 9.0), &halves);
    }
}

#[test]
fn equalize_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Equalize| op.plan::<f32>(gpu).unwrap_err().kind();
    assert_eq!(kind(Equalize::new([3, 3]).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Equalize::new([3, 3]).range(2.0, 1.0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Equalize::new([1 << 20, 1 << 20])), ErrorKind::TooLarge);
    assert_eq!(Equalize::new([3, 3]).plan::<u32>(gpu).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(Equalize::new([0, 3]).plan::<u8>(gpu).unwrap().program().dispatches.is_empty());
}
