//! Every variant of `Transpose` against the reference, bit by bit.

use crate::support::{Device, Random, Sample, devices, gpu};
use tilework::prelude::*;
use tilework::reference::transpose;
use tilework::{Element, ErrorKind};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Transpose::variants().iter().map(|v| v.name))
}

/// Runs all variants and compares bits.
fn check<T: Element>(device: &Device, (batch, m, n): (usize, usize, usize), x: &[T]) {
    let want = transpose(batch, m, n, x);
    let input = device.gpu.upload(x).unwrap();
    for variant in names() {
        let plan = Transpose::batched(batch, m, n).variant(variant).plan::<T>(&device.gpu).unwrap();
        let output = device.gpu.upload(&vec![T::default(); x.len()]).unwrap();
        let mut rec = device.gpu.recorder();
        plan.record(&mut rec, &input, &output).unwrap();
        rec.submit().unwrap();
        let got = output.read().unwrap();
        let (got, want) = (bytemuck::cast_slice::<T, u8>(&got), bytemuck::cast_slice::<T, u8>(&want));
        let wrong = got.iter().zip(want).position(|(g, w)| g != w);
        assert!(
            got.len() == want.len() && wrong.is_none(),
            "{}: {} {variant} {batch} x {m} x {n}: byte {wrong:?}",
            device.label,
            T::DTYPE
        );
    }
}

fn check_random<T: Sample>(device: &Device, shape: (usize, usize, usize)) {
    let mut random = Random::new(shape.1 as u64);
    check(device, shape, &random.any::<T>(shape.0 * shape.1 * shape.2));
}

#[test]
fn many_columns_of_tiles_match_reference() {
    let Some(device) = devices().first() else { return };
    // More than one chunk of columns, the last partial.
    check_random::<f32>(device, (1, 132, 64 * 35 + 8));
    check_random::<f32>(device, (2, 65, 32 * 35 + 1));
    check_random::<u8>(device, (1, 130, 64 * 33 + 5));
}

#[test]
fn empty_input_writes_nothing() {
    for device in devices() {
        for shape in [(0, 5, 5), (1, 0, 5), (1, 5, 0)] {
            check::<f32>(device, shape, &[]);
        }
    }
}

#[test]
fn bytes_after_the_output_are_kept() {
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        let gpu = &device.gpu;
        let input = gpu.upload(&[1u8, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
        let buffer = gpu.upload(&[0xee_u8; 12]).unwrap();
        let plan = Transpose::new(3, 3).variant(variant).plan::<u8>(gpu).unwrap();
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &input, buffer.slice(..9).unwrap()).unwrap();
        rec.submit().unwrap();
        let got = buffer.read().unwrap();
        assert_eq!(got, [1, 4, 7, 2, 5, 8, 3, 6, 9, 0xee, 0xee, 0xee], "{}: {variant}", device.label);
    }
}

#[test]
fn transposing_twice_is_the_identity() {
    let Some(gpu) = gpu() else { return };
    let x: Vec<u32> = (0..300 * 500).collect();
    let once = gpu.transpose(&gpu.upload(&x).unwrap(), 300, 500).unwrap();
    assert_eq!(gpu.transpose(&once, 500, 300).unwrap().read().unwrap(), x);
}

#[test]
fn rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Transpose| op.plan::<f32>(gpu).unwrap_err().kind();
    assert_eq!(kind(Transpose::new(4, 4).variant("fastest")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Transpose::new(usize::MAX, 2)), ErrorKind::TooLarge);
    assert_eq!(kind(Transpose::new(1 << 20, 1 << 20)), ErrorKind::TooLarge);
    let x = |n: usize| gpu.upload(&vec![1.0f32; n]).unwrap();
    let (six, five) = (x(6), x(5));
    let plan = Transpose::new(2, 3).plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    assert_eq!(plan.record(&mut rec, &five, &six).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(plan.record(&mut rec, &six, &five).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(plan.record(&mut rec, &six, &six).unwrap_err().kind(), ErrorKind::Aliasing);
}
