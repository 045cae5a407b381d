//! Every variant of `SegmentedScan` against the reference.

use crate::support::{Device, Random, Sample, assert_close, devices, numbers};
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

/// Runs one form and compares, with all posts and with some left out.
fn check<T: Sample, O>(device: &Device, op: O, variant: &str, exclusive: bool, heads: &[u32])
where
    O: Reducer<T, Output = T> + Clone,
{
    let n = heads.len();
    let operator = op.operator();
    let input: Vec<T> = Random::new(n as u64).elements(n);
    let desc = SegmentedScan::new(op, n).when(exclusive, |op| op.exclusive()).variant(variant);
    let what = format!("{}: {} of {n} {}, {variant}", device.label, operator.name(), T::DTYPE);
    let got = run(&device.gpu, &desc, &input, heads).unwrap_or_else(|e| panic!("{what}: {e}"));
    let want = segmented_scan(&operator, exclusive, &input, heads).expect("there is a reference");
    let bound = segmented_scan_bound(&operator, exclusive, &input, heads);
    assert_close(&what, &numbers(&got), &want, &bound);
}

fn names() -> impl Iterator<Item = &'static str> {
    SegmentedScan::variants().iter().map(|v| v.name)
}

#[test]
fn segments_of_any_length_match_reference() {
    for device in devices() {
        for (v, variant) in names().enumerate() {
            for (i, &n) in [0, 1, 5, 64, 67, 511, 512, 513, 4099, 20_001].iter().enumerate() {
                for length in [1, 2, 70, 1500, u64::MAX] {
                    if device.main || i % 4 == 1 {
                        check::<f32, _>(device, Sum, variant, v == 1, &flags(n, length));
                    }
                }
            }
            check::<f16, _>(device, Sum, variant, v == 1, &flags(5001, 300));
            if device.main {
                check::<u32, _>(device, Max, variant, v == 1, &flags(5001, 300));
                check::<i32, _>(device, Prod, variant, v == 0, &flags(5001, 300));
                check::<f32, _>(device, Min, variant, v == 0, &flags(5001, 300));
            }
        }
    }
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
