//! `AdjacentDifference` against the reference.

use super::reverse::{LENGTHS, made};
use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{adjacent_difference, adjacent_difference_bound};

fn check<T: Sample>(device: &Device, x: &[T])
where
    AdjacentDifference: Op<T>,
{
    let got = made(device, &AdjacentDifference::new(x.len()), x);
    let what = format!("{}: {} {}", device.label, x.len(), T::DTYPE);
    let bound = adjacent_difference_bound(x);
    assert_close(&what, &numbers(&got), &numbers(&adjacent_difference(x)), &bound);
}

#[test]
fn differences_match_reference_for_every_length_and_type() {
    let mut random = Random::new(6);
    for device in devices() {
        for n in LENGTHS {
            check(device, &random.elements::<f32>(n));
            check(device, &random.elements::<f16>(n));
            check(device, &random.any::<i32>(n));
            check(device, &random.any::<u32>(n));
        }
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        check(device, &[nan, 1.0, inf, inf, -inf, 2.0, f32::MAX, -f32::MAX]);
    }
}

#[test]
fn differences_reject_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let op = AdjacentDifference::new;
    assert_eq!(refusal::<f32>(gpu, &op(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<u32>(gpu, &op(usize::MAX)), ErrorKind::TooLarge);
}
