//! `StridedCopy` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::gpu::RawSlice;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference;

/// Runs an op on arrays and compares the bits of its output, and those behind it.
pub(super) fn check<T: Sample>(device: &Device, op: &impl Op<T>, inputs: &[&[T]], want: &[T], what: &str) {
    let (gpu, n) = (&device.gpu, want.len());
    let before: Vec<T> = Random::new(9).any(n + 3);
    let bits = |x: &[T]| bytemuck::cast_slice::<T, u8>(x).to_vec();
    let given: Vec<_> = inputs.iter().map(|x| gpu.upload(x).unwrap()).collect();
    let output = gpu.upload(&before).unwrap();
    let executable = op.plan::<T>(gpu).unwrap().into_executable();
    let mut operands: Vec<RawSlice<'_>> = given.iter().map(|x| Slice::from(x).untyped()).collect();
    operands.push(output.slice(..n).unwrap().untyped());
    let mut rec = gpu.recorder();
    executable.record(&mut rec, &operands).unwrap();
    rec.submit().unwrap();
    let got = output.read().unwrap();
    assert_eq!(bits(&got[..n]), bits(want), "{}: {what} {}", device.label, T::DTYPE);
    assert_eq!(bits(&got[n..]), bits(&before[n..]), "{}: {what} {}: behind", device.label, T::DTYPE);
}

fn strided<T: Sample>(device: &Device)
where
    StridedCopy: Op<T>,
{
    let all: [(usize, &[usize], &[isize], usize); 7] = [
        (1000, &[9, 3, 7], &[100, -20, 2], 60),
        (13, &[13], &[-1], 12),
        (1, &[4, 3], &[0, 0], 0),
        (5000, &[2, 3, 4, 5, 2, 3], &[2000, 600, 150, 30, 10, 3], 1),
        (600, &[1, 1, 599], &[7, -9, 1], 1),
        (0, &[3, 0, 2], &[1, 5, 9], 0),
        (300, &[257], &[1], 5),
    ];
    for (n, shape, strides, origin) in all {
        let x: Vec<T> = Random::new(n as u64).any(n);
        let want = reference::strided_copy(shape, strides, origin, &x);
        let op = StridedCopy::new(n, shape, strides).origin(origin);
        check(device, &op, &[&x], &want, &format!("{op:?}"));
    }
}

#[test]
fn copies_with_strides_match_the_reference() {
    for device in devices() {
        strided::<f32>(device);
        strided::<f16>(device);
        strided::<u8>(device);
    }
}

/// Elements go to places with gaps, and the others stay; the increments of BLAS, below 0 and 0.
#[test]
fn copies_into_gaps_leave_the_rest() {
    let all: [(usize, &[usize], &[isize], usize); 3] =
        [(1200, &[9, 3, 7], &[120, -20, 2], 60), (9, &[5], &[-2], 8), (6, &[2, 1, 1], &[3, 0, 0], 1)];
    for device in devices() {
        let gpu = &device.gpu;
        for (n, shape, strides, origin) in all {
            let op = StridedCopy::new(n, shape, strides).origin(origin).scattered();
            let (x, before): (Vec<f32>, Vec<f32>) =
                (Random::new(1).elements(shape.iter().product()), Random::new(2).elements(n));
            let (given, output) = (gpu.upload(&x).unwrap(), gpu.upload(&before).unwrap());
            let mut rec = gpu.recorder();
            op.plan::<f32>(gpu).unwrap().record(&mut rec, &given, &output).unwrap();
            rec.submit().unwrap();
            let places: Vec<usize> = (0..n).collect();
            let places = reference::strided_copy(shape, strides, origin, &places);
            let mut want = before.clone();
            places.iter().zip(&x).for_each(|(at, x)| want[*at] = *x);
            assert_eq!(output.read().unwrap(), want, "{}: {op:?}", device.label);
        }
        let op = |shape: &[usize], strides: &[isize]| StridedCopy::new(99, shape, strides).scattered();
        for (shape, strides) in [(&[3][..], &[0][..]), (&[3, 3], &[2, 1]), (&[2, 2], &[5, -5])] {
            assert_eq!(refusal::<f32>(gpu, &op(shape, strides).origin(50)), ErrorKind::InvalidArgument);
        }
        assert_eq!(refusal::<f16>(gpu, &op(&[3], &[1])), ErrorKind::Unsupported);
    }
}

#[test]
fn strided_copy_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let copy = |n, shape: &[usize], strides: &[isize]| refusal::<f32>(gpu, &StridedCopy::new(n, shape, strides));
    assert_eq!(copy(9, &[3, 3], &[3, 2]), ErrorKind::InvalidArgument);
    assert_eq!(copy(9, &[3], &[-1]), ErrorKind::InvalidArgument);
    assert_eq!(copy(9, &[3], &[1, 1]), ErrorKind::InvalidArgument);
    assert_eq!(copy(9, &[], &[]), ErrorKind::InvalidArgument);
    assert_eq!(copy(9, &[1; 7], &[1; 7]), ErrorKind::InvalidArgument);
    assert_eq!(copy(9, &[usize::MAX, 2], &[0, 0]), ErrorKind::TooLarge);
    assert_eq!(copy(9, &[3, usize::MAX / 4], &[isize::MAX, isize::MAX]), ErrorKind::TooLarge);
}
