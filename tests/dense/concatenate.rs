//! `Concatenate` against the reference.

use super::strided_copy::check;
use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::{ErrorKind, reference};

fn joined<T: Sample>(device: &Device)
where
    Concatenate: Op<T>,
{
    let all: [(&[&[usize]], usize); 5] = [
        (&[&[2, 3, 5], &[2, 1, 5]], 1),
        (&[&[4], &[0], &[257], &[1]], 0),
        (&[&[3, 2], &[3, 5], &[3, 1]], 1),
        (&[&[0, 2], &[0, 5]], 1),
        (&[&[3, 0, 2], &[3, 4, 2], &[3, 0, 2], &[3, 1, 2]], 1),
    ];
    for (shapes, axis) in all {
        let arrays = shapes.iter().enumerate();
        let arrays: Vec<Vec<T>> = arrays.map(|(k, shape)| Random::new(k as u64).any(shape.iter().product())).collect();
        let given: Vec<&[T]> = arrays.iter().map(|x| &x[..]).collect();
        let op = Concatenate::new(shapes, axis);
        check(device, &op, &given, &reference::concatenate(&op, &given), &format!("{op:?}"));
    }
}

#[test]
fn joined_arrays_match_the_reference() {
    for device in devices() {
        joined::<u32>(device);
        joined::<f16>(device);
        joined::<u8>(device);
    }
}

#[test]
fn concatenate_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let join = |shapes: &[&[usize]], axis| refusal::<f32>(gpu, &Concatenate::new(shapes, axis));
    assert_eq!(join(&[&[2, 2]], 0), ErrorKind::InvalidArgument);
    assert_eq!(join(&[&[2][..]; 5], 0), ErrorKind::InvalidArgument);
    assert_eq!(join(&[&[2, 2], &[2, 2]], 2), ErrorKind::InvalidArgument);
    assert_eq!(join(&[&[2, 2], &[3, 2]], 1), ErrorKind::Shape);
    assert_eq!(join(&[&[2, 2], &[2]], 0), ErrorKind::Shape);
    assert_eq!(join(&[&[usize::MAX], &[usize::MAX]], 0), ErrorKind::TooLarge);
}
