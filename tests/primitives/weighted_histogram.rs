//! `WeightedHistogram` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{weighted_histogram, weighted_histogram_bound};

/// Compares sums, with one element behind them.
#[track_caller]
fn check<T: Sample>(device: &Device, op: &WeightedHistogram, bins: usize, x: &[f32], weights: &[T]) {
    let gpu = &device.gpu;
    let (input, given) = (gpu.upload(x).unwrap(), gpu.upload(weights).unwrap());
    let sums = gpu.upload(&vec![T::from_f64(77.0); bins + 1]).unwrap();
    let mut rec = gpu.recorder();
    let plan = op.clone().plan::<T>(gpu).unwrap();
    plan.record(&mut rec, &input, &given, sums.slice(..bins).unwrap()).unwrap();
    rec.submit().unwrap();
    let (want, bound) = (weighted_histogram(op, x, weights), weighted_histogram_bound(op, x, weights));
    let what = format!("{}: {op:?} of {} {}", device.label, x.len(), T::DTYPE);
    let want = [want.unwrap(), vec![77.0]].concat();
    assert_close(&what, &numbers(&sums.read().unwrap()), &want, &[bound.unwrap(), vec![0.0]].concat());
}

#[test]
fn sums_match_the_reference() {
    for device in devices() {
        let n = if device.main { 20_000 } else { 900 };
        let mut random = Random::new(3);
        let mut x = random.elements::<f32>(n);
        x.iter_mut().step_by(3).for_each(|x| *x = (*x * 8.0).round() / 8.0);
        x.iter_mut().skip(1).step_by(97).for_each(|x| *x = f32::NAN);
        let (floats, words, signed) = (random.elements::<f32>(n), random.elements(n), random.elements(n));
        for bins in [1, 64, 1000] {
            let op = WeightedHistogram::new(n, bins, -1.0, 0.75);
            check::<f32>(device, &op, bins, &x, &floats);
            check::<u32>(device, &op, bins, &x, &words);
        }
        let op = WeightedHistogram::with_edges(n, [-0.5, -0.25, 0.0, 0.1, 3.0]);
        check::<i32>(device, &op, 4, &x, &signed);
        // All in one bin, none in any, and no elements.
        check::<f32>(device, &WeightedHistogram::new(n, 3, -1e6, 1e6), 3, &vec![5.0; n], &floats);
        check::<f32>(device, &WeightedHistogram::new(n, 3, 90.0, 99.0), 3, &x, &floats);
        check::<f32>(device, &WeightedHistogram::new(0, 3, 0.0, 1.0), 3, &[], &[]);
    }
}

#[test]
fn weighted_histogram_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |bins, lo, hi| refusal::<f32>(gpu, &WeightedHistogram::new(9, bins, lo, hi));
    assert_eq!(kind(0, 0.0, 1.0), ErrorKind::InvalidArgument);
    assert_eq!(kind(4, 1.0, 1.0), ErrorKind::InvalidArgument);
    assert_eq!(kind(4, f64::NAN, 1.0), ErrorKind::InvalidArgument);
    assert_eq!(kind(1 << 21, 0.0, 1.0), ErrorKind::TooLarge);
    assert_eq!(refusal::<f32>(gpu, &WeightedHistogram::with_edges(4, [1.0, 0.0])), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f16>(gpu, &WeightedHistogram::new(9, 2, 0.0, 1.0)), ErrorKind::Unsupported);
    assert_eq!(refusal::<f32>(gpu, &WeightedHistogram::new(usize::MAX, 2, 0.0, 1.0)), ErrorKind::TooLarge);
    let named = WeightedHistogram::new(9, 2, 0.0, 1.0).variant("fast");
    assert_eq!(refusal::<f32>(gpu, &named), ErrorKind::InvalidArgument);
}
