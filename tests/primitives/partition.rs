//! Every variant of `Partition` against the reference.

use super::select::{LENGTHS, flags};
use crate::support::{Device, Random, Sample, devices};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::partition;

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Partition::variants().iter().map(|v| v.name))
}

fn check<T: Sample + PartialEq>(device: &Device, variant: &str, x: &[T], f: &[u32])
where
    Partition: Op<T>,
{
    let (gpu, n) = (&device.gpu, x.len());
    let plan = match Partition::new(n).variant(variant).plan::<T>(gpu) {
        Err(e) if e.kind() == ErrorKind::Unsupported => return,
        other => other.unwrap(),
    };
    let (input, flags) = (gpu.upload(x).unwrap(), gpu.upload(f).unwrap());
    let (output, count) = (gpu.alloc::<T>(n).unwrap(), gpu.upload(&[99u32]).unwrap());
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &input, &flags, &output, &count).unwrap();
    rec.submit().unwrap();
    let (want, kept) = partition(x, f);
    let what = format!("{}: {n} {} by {variant}", device.label, T::DTYPE);
    assert_eq!(count.read().unwrap(), [kept as u32], "{what}");
    assert!(output.read().unwrap() == want, "{what}");
}

#[test]
fn both_sides_match_reference_at_every_length() {
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        let lengths = if device.main { &LENGTHS[..] } else { &LENGTHS[5..10] };
        for (i, &n) in lengths.iter().enumerate() {
            let mut random = Random::new(i as u64);
            let (x, f) = (random.any::<i32>(n), flags(&mut random, n, [2, 1, 50, u64::MAX][i % 4]));
            check(device, variant, &x, &f);
            let halves: Vec<f16> = x.iter().map(|x| f16::from_f32((x % 2000) as f32)).collect();
            check(device, variant, &halves, &f);
        }
    }
}

#[test]
fn predicates_partition_like_flags() {
    for device in devices() {
        let gpu = &device.gpu;
        let x: Vec<u32> = (0..9_999).map(|i| i * 7 % 100).collect();
        let low = Predicate::custom("fn keep(x: T) -> bool { return x < 50u; }");
        let plan = Partition::by(x.len(), low).plan::<u32>(gpu).unwrap();
        let (input, output) = (gpu.upload(&x).unwrap(), gpu.alloc::<u32>(x.len()).unwrap());
        let count = gpu.alloc::<u32>(1).unwrap();
        let mut rec = gpu.recorder();
        plan.record_by(&mut rec, &input, &output, &count).unwrap();
        rec.submit().unwrap();
        let f: Vec<u32> = x.iter().map(|x| u32::from(*x < 50)).collect();
        assert!(output.read().unwrap() == partition(&x, &f).0, "{}", device.label);
    }
}
