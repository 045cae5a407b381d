//! Every variant of `PermuteAxes` against the reference.

use crate::nn::training::refusal;
use crate::support::coverage::sample;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::permute_axes;

fn check<T: Sample>(device: &Device, shape: &[usize], axes: &[usize])
where
    PermuteAxes: Op<T>,
{
    let (gpu, n) = (&device.gpu, shape.iter().product());
    let x: Vec<T> = Random::new(n as u64).any(n);
    let before: Vec<T> = Random::new(9).any(n + 3);
    let bits = |x: &[T]| bytemuck::cast_slice::<T, u8>(x).to_vec();
    for variant in PermuteAxes::variants() {
        let plan = PermuteAxes::new(shape, axes).variant(variant.name).plan::<T>(gpu).unwrap();
        let (dx, dy) = (gpu.upload(&x).unwrap(), gpu.upload(&before).unwrap());
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &dx, dy.slice(..n).unwrap()).unwrap();
        rec.submit().unwrap();
        let got = dy.read().unwrap();
        let what = format!("{}: {} {shape:?} {axes:?} {}", device.label, variant.name, T::DTYPE);
        assert_eq!(bits(&got[..n]), bits(&permute_axes(shape, axes, &x)), "{what}");
        assert_eq!(bits(&got[n..]), bits(&before[n..]), "{what}: behind the output");
    }
}

#[test]
fn permute_axes_matches_reference_for_every_kind_of_order() {
    // Rows that stay, of vec4s, words and single elements; other last axes; six axes; extents of 1 and 0.
    let all: [(&[usize], &[usize]); 14] = [
        (&[5, 6, 8], &[1, 0, 2]),
        (&[5, 6, 7], &[1, 0, 2]),
        (&[40, 3, 35], &[2, 1, 0]),
        (&[3, 33, 65], &[0, 2, 1]),
        (&[9], &[0]),
        (&[1, 1], &[1, 0]),
        (&[2, 3, 4, 5, 2, 3], &[5, 4, 3, 2, 1, 0]),
        (&[2, 3, 4, 5, 2, 3], &[4, 0, 5, 1, 3, 2]),
        (&[7, 1, 9, 2], &[3, 1, 0, 2]),
        (&[4, 0, 3], &[2, 0, 1]),
        (&[6, 5, 4, 34], &[3, 1, 2, 0]),
        (&[2, 3, 4], &[0, 1, 2]),
        (&[3, 70, 2], &[1, 2, 0]),
        (&[2, 5, 3, 4, 3], &[0, 3, 2, 1, 4]),
    ];
    for device in devices() {
        for (shape, axes) in all {
            check::<f32>(device, shape, axes);
        }
        for (shape, axes) in sample(&all, 3) {
            check::<f16>(device, shape, axes);
            check::<u8>(device, shape, axes);
        }
    }
}

#[test]
fn permute_axes_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let op = PermuteAxes::new;
    assert_eq!(refusal::<f32>(gpu, &op(&[4, 4], &[1, 0]).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &op(&[4, 4], &[1, 1])), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<u8>(gpu, &op(&[1 << 40], &[0])), ErrorKind::TooLarge);
}
