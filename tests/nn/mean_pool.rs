//! Every variant of `MeanPool` against the reference.

use super::training::{names, random, refusal};
use crate::support::{Device, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::nn::MeanPool;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{mean_pool, mean_pool_bound};

fn check<T: Sample>(device: &Device, what: &str, op: &MeanPool, x: &[T], lengths: &[u32])
where
    MeanPool: Op<T>,
{
    let gpu = &device.gpu;
    let (want, bound) = (mean_pool(op, x, lengths), mean_pool_bound(op, x, lengths));
    for variant in names(MeanPool::variants()) {
        let plan = op.clone().variant(variant).plan::<T>(gpu).unwrap();
        let y = gpu.upload(&vec![7.0f32; want.len()]).unwrap();
        let (x, lengths) = (gpu.upload(x).unwrap(), gpu.upload(lengths).unwrap());
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &x, &lengths, &y).unwrap();
        rec.submit().unwrap();
        let what = format!("{}: {variant} {} {what}", device.label, T::DTYPE);
        assert_close(&what, &numbers(&y.read().unwrap()), &numbers(&want), &bound);
    }
}

#[test]
fn mean_pool_matches_reference_for_sequences_of_every_length() {
    for device in devices() {
        for (tokens, width) in [(1, 3), (5, 384), (9, 7), (300, 4), (2, 1100), (0, 8), (4, 0)] {
            // None, one, all, and more than the tokens.
            let lengths = [0, 1, tokens as u32, 1000, (tokens as u32).div_ceil(2)];
            let op = MeanPool::new([lengths.len(), tokens, width]);
            for op in [op.clone(), op.normalized()] {
                let what = format!("{tokens} x {width}");
                let n = lengths.len() * tokens * width;
                check(device, &what, &op, &random::<f32>(n as u64, n), &lengths);
                check(device, &what, &op, &random::<f16>(n as u64, n), &lengths);
            }
        }
    }
}

#[test]
fn mean_pool_does_not_read_past_a_length() {
    for device in devices() {
        let mut x = random::<f32>(3, 2 * 6 * 8);
        x[8 * 2..8 * 6].fill(f32::NAN);
        check(device, "with NaN behind", &MeanPool::new([2, 6, 8]).normalized(), &x, &[2, 6]);
    }
}

#[test]
fn mean_pool_of_nan_is_not_normalised() {
    for device in devices() {
        let mut x = random::<f32>(3, 2 * 6 * 8);
        x[8 * 2 + 3] = f32::NAN;
        check(device, "with NaN", &MeanPool::new([2, 6, 8]), &x, &[6, 6]);
        let op = MeanPool::new([2, 6, 8]).normalized();
        check(device, "with NaN", &op, &x, &[6, 6]);
        // NaN alone would also match a wrong reference.
        assert!(mean_pool(&op, &x, &[6, 6])[..8].iter().all(|y| y.is_nan()));
    }
}

#[test]
fn mean_pool_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let op = MeanPool::new([2, 3, 4]);
    assert_eq!(refusal::<f32>(gpu, &op.variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &MeanPool::new([usize::MAX, 2, 1])), ErrorKind::TooLarge);
    assert_eq!(refusal::<f16>(gpu, &MeanPool::new([1, 1 << 24, 1])), ErrorKind::TooLarge);
}
