//! Every variant of `SegmentedReduce` against the reference.

use super::segmented_scan::flags;
use super::select::read_counted;
use crate::support::{Device, Random, Sample, assert_close, devices, numbers};
use tilework::prelude::*;
use tilework::primitives::Reducer;
use tilework::reference::{Number, segmented_reduce, segmented_reduce_bound};
use tilework::{ErrorKind, Result};

fn run<T, O>(gpu: &Gpu, desc: &SegmentedReduce<O>, values: &[T], heads: &[u32]) -> Result<Vec<T>>
where
    T: Number + PartialEq,
    O: Reducer<T, Output = T>,
{
    let plan = desc.plan::<T>(gpu)?;
    let before = T::from_f64(99.0);
    let (x, h) = (gpu.upload(values)?, gpu.upload(heads)?);
    let (results, count) = (gpu.upload(&vec![before; values.len()])?, gpu.upload(&[12_345u32])?);
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &x, &h, &results, &count)?;
    rec.submit()?;
    read_counted(&results, &count, before)
}

fn check<T: Sample + PartialEq, O>(device: &Device, op: &O, desc: &SegmentedReduce<O>, heads: &[u32])
where
    O: Reducer<T, Output = T>,
{
    let values: Vec<T> = Random::new(heads.len() as u64).elements(heads.len());
    let operator = op.operator();
    let what = format!("{}: {} of {} {}", device.label, operator.name(), heads.len(), T::DTYPE);
    let got = run(&device.gpu, desc, &values, heads).unwrap_or_else(|e| panic!("{what}: {e}"));
    let want = segmented_reduce(&operator, &values, heads).expect("there is a reference");
    assert_close(&what, &numbers(&got), &want, &segmented_reduce_bound(&operator, &values, heads));
}

#[test]
fn lookback_is_correct_when_workgroups_never_post() {
    let n = 60_001;
    for device in devices() {
        for (one_in, length) in [(2, u64::MAX), (2, 900), (8, 20)] {
            let desc = SegmentedReduce::new(Sum, n).variant("lookback").leave_out_posts(one_in);
            check::<i32, _>(device, &Sum, &desc, &flags(n, length));
            if !device.main {
                break;
            }
        }
    }
}

#[test]
fn rejects_flags_of_another_length() {
    let Some(device) = devices().first() else { return };
    let (x, h) = (device.gpu.upload(&[1.0f32; 5]).unwrap(), device.gpu.upload(&[1u32; 4]).unwrap());
    let (y, count) = (device.gpu.alloc::<f32>(5).unwrap(), device.gpu.alloc::<u32>(1).unwrap());
    let plan = SegmentedReduce::new(Sum, 5).plan::<f32>(&device.gpu).unwrap();
    let e = plan.record(&mut device.gpu.recorder(), &x, &h, &y, &count).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shape);
    assert!(e.to_string().contains("heads"), "{e}");
}
