//! Every variant of `SegmentedScan` against the reference.

use crate::support::{Random, assert_close, devices, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::primitives::{Operator, Reducer};
use tilework::program::Op;
use tilework::reference::{segmented_scan, segmented_scan_bound};
use tilework::{Element, ErrorKind, Result};

fn run<T: Element, O>(gpu: &Gpu, desc: &SegmentedScan<O>, input: &[T], heads: &[u32]) -> Result<Vec<T>>
where
    O: Reducer<T, Output = T>,
{
    let (x, h, y) = (gpu.upload(input)?, gpu.upload(heads)?, gpu.alloc::<T>(input.len())?);
    let plan = desc.plan::<T>(gpu)?;
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &x, &h, &y)?;
    rec.submit()?;
    y.read()
}

/// Flags of which about one in `length` is nonzero.
pub(crate) fn flags(n: usize, length: u64) -> Vec<u32> {
    let mut random = Random::new(length);
    (0..n).map(|_| if random.next().is_multiple_of(length) { random.next() as u32 | 1 } else { 0 }).collect()
}

fn names() -> impl Iterator<Item = &'static str> {
    SegmentedScan::variants().iter().map(|v| v.name)
}

#[test]
fn lookback_is_correct_when_workgroups_never_post() {
    let n = 100_001;
    let input: Vec<u32> = Random::new(3).elements(n);
    for device in devices() {
        for (one_in, length) in [(2, u64::MAX), (2, 900), (8, 20_000)] {
            let heads = flags(n, length);
            let desc = SegmentedScan::new(Sum, n).variant("lookback").leave_out_posts(one_in);
            let got = run(&device.gpu, &desc, &input, &heads).unwrap();
            let want = segmented_scan(&Operator::Sum, false, &input, &heads).unwrap();
            assert_close(&device.label, &numbers(&got), &want, &vec![0.0; n]);
            if !device.main {
                break;
            }
        }
    }
}

#[test]
fn inputs_larger_than_one_binding_are_split() {
    let n = 50_001;
    let halves: Vec<f16> = (0..n).map(|i| f16::from_f32(f32::from((i % 7) as u8) - 3.0)).collect();
    let heads = flags(n, 40);
    for device in devices().iter().filter(|d| d.main || d.label.contains("WebGPU")) {
        // A device that binds at most 32 KiB, for flags of 200 KB.
        let mut small = device.gpu.profile().clone();
        small.limits.max_storage_binding = 32 << 10;
        for variant in names() {
            let desc = SegmentedScan::new(Sum, n).variant(variant);
            let program = Op::<f16>::lower(&desc, &small).unwrap();
            assert!(program.dispatches.len() > 6);
            let (x, h) = (device.gpu.upload(&halves).unwrap(), device.gpu.upload(&heads).unwrap());
            let y = device.gpu.alloc::<f16>(n).unwrap();
            let ready = device.gpu.prepare(program).unwrap();
            let mut rec = device.gpu.recorder();
            let operands = [Slice::from(&x).untyped(), Slice::from(&h).untyped(), Slice::from(&y).untyped()];
            ready.record(&mut rec, &operands).unwrap();
            rec.submit().unwrap();
            let want = segmented_scan(&Operator::Sum, false, &halves, &heads).unwrap();
            let bound = segmented_scan_bound(&Operator::Sum, false, &halves, &heads);
            let what = format!("{}: {variant}", device.label);
            assert_close(&what, &numbers(&y.read().unwrap()), &want, &bound);
        }
    }
}

#[test]
fn rejects_flags_of_another_length() {
    let Some(device) = devices().first() else { return };
    let e = run(&device.gpu, &SegmentedScan::new(Sum, 5), &[1u32; 5], &[1; 4]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shape);
    assert!(e.to_string().contains("heads"), "{e}");
}
