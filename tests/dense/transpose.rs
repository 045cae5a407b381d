//! Every variant of `Transpose` against the reference, bit by bit.

use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
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

/// Around tiles of 32 and 64 and words of elements; flat, and in a batch.
const SHAPES: [(usize, usize, usize); 22] = [
    (1, 1, 1),
    (1, 1, 77),
    (1, 77, 1),
    (1, 2, 3),
    (5, 3, 2),
    (1, 4, 4),
    (3, 5, 7),
    (1, 31, 33),
    (1, 32, 32),
    (2, 33, 31),
    (1, 63, 65),
    (1, 64, 64),
    (7, 64, 68),
    (1, 65, 64),
    (2, 66, 130),
    (1, 100, 200),
    (3, 127, 129),
    (1, 1030, 20),
    (1, 3, 5001),
    (1, 5001, 3),
    (40, 12, 9),
    (1, 1100, 67),
];

#[test]
fn every_shape_and_size_of_element_matches_reference() {
    for device in devices() {
        let shapes = if device.main { &SHAPES[..] } else { &SHAPES[8..14] };
        for &shape in shapes {
            check_random::<u8>(device, shape);
            check_random::<f16>(device, shape);
            check_random::<f32>(device, shape);
            if device.gpu.profile().features.int64 {
                let mut random = Random::new(7);
                let words: Vec<u64> = (0..shape.0 * shape.1 * shape.2).map(|_| random.next()).collect();
                check(device, shape, &words);
            }
        }
        check_random::<i8>(device, (1, 70, 90));
        check_random::<i32>(device, (1, 70, 90));
        check_random::<u32>(device, (2, 40, 36));
    }
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
