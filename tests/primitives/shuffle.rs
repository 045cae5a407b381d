//! `Shuffle` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::shuffle;

#[track_caller]
fn check<T: Sample>(device: &Device, n: usize, seed: u64)
where
    Shuffle: Op<T>,
{
    let (gpu, op) = (&device.gpu, Shuffle::new(n).seed(seed));
    let x = Random::new(seed).any::<T>(n);
    let (input, output) = (gpu.upload(&x).unwrap(), gpu.alloc::<T>(n).unwrap());
    let mut rec = gpu.recorder();
    op.plan::<T>(gpu).unwrap().record(&mut rec, &input, &output).unwrap();
    rec.submit().unwrap();
    let (got, want) = (output.read().unwrap(), shuffle(&op, &x));
    let same = bytemuck::cast_slice::<T, u8>(&got) == bytemuck::cast_slice::<T, u8>(&want);
    assert!(same, "{}: {n} {}", device.label, T::DTYPE);
}

#[test]
fn permutations_match_the_reference() {
    for device in devices() {
        check::<u32>(device, 1, 5);
        check::<f32>(device, 3001, 6);
        check::<f16>(device, 501, u64::MAX);
        check::<u8>(device, 1002, 7);
        check::<i8>(device, 0, 8);
    }
}

/// Each of the six orders of three elements comes about equally often.
#[test]
fn all_orders_are_equally_likely() {
    let mut counts = std::collections::BTreeMap::new();
    for seed in 0..6000 {
        *counts.entry(shuffle(&Shuffle::new(3).seed(seed), &[0u8, 1, 2])).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 6);
    // Five standard deviations of 29.
    assert!(counts.values().all(|&count: &i32| (count - 1000).abs() < 145), "{counts:?}");
}

#[test]
fn shuffle_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Shuffle::new(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<u8>(gpu, &Shuffle::new(usize::MAX)), ErrorKind::TooLarge);
}
