//! `PadAxes` against the reference.

use super::strided_copy::check;
use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::dense::{PadAxes, PadMode};
use tilework::program::Op;
use tilework::{ErrorKind, reference};

fn padded<T: Sample>(device: &Device)
where
    PadAxes: Op<T>,
{
    let all: [(&[usize], &[[usize; 2]]); 5] = [
        (&[5, 7], &[[1, 3], [2, 0]]),
        (&[3], &[[10, 8]]),
        (&[2, 1, 3, 2, 2, 3], &[[1, 0], [2, 2], [0, 0], [0, 1], [1, 1], [2, 5]]),
        (&[1, 300], &[[0, 0], [0, 0]]),
        (&[1], &[[0, 3]]),
    ];
    for (shape, added) in all {
        let x: Vec<T> = Random::new(4).any(shape.iter().product());
        for mode in [PadMode::Constant(3.0), PadMode::Edge, PadMode::Wrap, PadMode::Reflect] {
            let op = PadAxes::new(shape, added, mode);
            check(device, &op, &[&x], &reference::pad_axes(&op, &x).unwrap(), &format!("{op:?}"));
        }
    }
    let none = PadAxes::new(&[2, 0], &[[1, 1], [0, 3]], PadMode::Constant(-1.0));
    check(device, &none, &[&[]], &reference::pad_axes::<T>(&none, &[]).unwrap(), "of nothing");
}

#[test]
fn padded_arrays_match_the_reference() {
    for device in devices() {
        padded::<f32>(device);
        padded::<f16>(device);
        padded::<i8>(device);
    }
}

#[test]
fn pad_axes_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let pad = |shape: &[usize], added: &[[usize; 2]], mode| refusal::<f32>(gpu, &PadAxes::new(shape, added, mode));
    assert_eq!(pad(&[2, 2], &[[1, 1]], PadMode::Edge), ErrorKind::InvalidArgument);
    assert_eq!(pad(&[2, 0], &[[1, 1]; 2], PadMode::Edge), ErrorKind::InvalidArgument);
    assert_eq!(pad(&[1; 7], &[[0, 0]; 7], PadMode::Edge), ErrorKind::InvalidArgument);
    assert_eq!(pad(&[2], &[[usize::MAX, 1]], PadMode::Edge), ErrorKind::TooLarge);
}
