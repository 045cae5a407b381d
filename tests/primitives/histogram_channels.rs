//! `HistogramChannels` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, devices, gpu};
use half::f16;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{Number, histogram_channels};
use tilework::{Element, ErrorKind};

/// Counts with every variant, with an element behind the counts.
fn check<T: Number + Element>(device: &Device, op: &HistogramChannels, input: &[T])
where
    HistogramChannels: Op<T>,
{
    let want = histogram_channels(op, input).unwrap();
    let gpu = &device.gpu;
    for variant in HistogramChannels::variants() {
        let plan = match op.clone().variant(variant.name).plan::<T>(gpu) {
            Err(e) if e.kind() == ErrorKind::Unsupported => continue,
            plan => plan.unwrap(),
        };
        let counts = gpu.upload(&vec![77u32; want.len() + 1]).unwrap();
        let mut rec = gpu.recorder();
        let x = gpu.upload(input).unwrap();
        plan.record(&mut rec, &x, counts.slice(..want.len()).unwrap()).unwrap();
        rec.submit().unwrap();
        let what = format!("{}: {} {op:?} of {}", device.label, variant.name, T::DTYPE);
        assert_eq!(counts.read().unwrap(), [&want[..], &[77]].concat(), "{what}");
    }
}

#[test]
fn channels_match_the_reference() {
    for device in devices() {
        let mut random = Random::new(12);
        for (n, channels, active) in [(2001, 3, 3), (1000, 4, 3), (5000, 1, 1), (0, 2, 2), (1, 16, 9)] {
            let bytes = random.any::<u8>(n * channels);
            check(device, &HistogramChannels::new(n, channels, 256).active(active), &bytes);
            let floats = random.any::<f32>(n * channels);
            check(device, &HistogramChannels::new(n, channels, 37).range(-0.7, 1.1), &floats);
            let halves = random.any::<f16>(n * channels);
            check(device, &HistogramChannels::with_edges(n, channels, [-1.0, 0.1, 0.7]), &halves);
            check(device, &HistogramChannels::new(n, channels, 1500).active(active), &vec![1499i32; n * channels]);
        }
    }
}

#[test]
fn histogram_channels_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op| refusal::<f32>(gpu, &op);
    let op = |channels, bins| HistogramChannels::new(9, channels, bins).range(0.0, 1.0);
    assert_eq!(kind(op(0, 4)), ErrorKind::InvalidArgument);
    assert_eq!(kind(op(17, 4)), ErrorKind::InvalidArgument);
    assert_eq!(kind(op(3, 4).active(4)), ErrorKind::InvalidArgument);
    assert_eq!(kind(op(3, 4).active(0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(op(3, 0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(HistogramChannels::new(9, 3, 4)), ErrorKind::InvalidArgument);
    assert_eq!(kind(op(3, 1 << 19)), ErrorKind::TooLarge);
    assert_eq!(kind(op(3, 2000).variant("privatized")), ErrorKind::Unsupported);
    assert_eq!(kind(op(3, 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(HistogramChannels::new(usize::MAX, 3, 4).range(0.0, 1.0)), ErrorKind::TooLarge);
}
