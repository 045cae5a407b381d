//! Every variant of `RunLength` against the reference.

use super::select::{LENGTHS, read_counted};
use super::unique::runs;
use crate::support::{Random, devices};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::run_length;

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(RunLength::variants().iter().map(|v| v.name))
}

#[test]
fn values_and_lengths_match_reference_at_every_length() {
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        let gpu = &device.gpu;
        let lengths = if device.main { &LENGTHS[..] } else { &LENGTHS[5..10] };
        for (i, &n) in lengths.iter().enumerate() {
            let x = runs::<f32>(&mut Random::new(i as u64), n, [3, 1, 5000, 40, u64::MAX >> 33][i % 5]);
            let plan = match RunLength::new(n).variant(variant).plan::<f32>(gpu) {
                Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                other => other.unwrap(),
            };
            let (input, values) = (gpu.upload(&x).unwrap(), gpu.upload(&vec![9.0f32; n]).unwrap());
            let (counts, count) = (gpu.alloc_zeroed::<u32>(n).unwrap(), gpu.upload(&[99u32]).unwrap());
            let mut rec = gpu.recorder();
            plan.record(&mut rec, &input, &values, &counts, &count).unwrap();
            rec.submit().unwrap();
            let want = run_length(&x);
            let what = format!("{}: {n} by {variant}", device.label);
            assert!(read_counted(&values, &count, 9.0).unwrap() == want.0, "values, {what}");
            assert!(read_counted(&counts, &count, 0).unwrap() == want.1, "counts, {what}");
        }
    }
}
