//! Every variant of `RunLength` against the reference.

use super::select::read_counted;
use crate::support::{Device, Sample, devices};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::run_length;

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(RunLength::variants().iter().map(|v| v.name))
}

fn check<T: Sample + PartialEq>(device: &Device, variant: &str, x: &[T])
where
    RunLength: Op<T>,
{
    let (gpu, n) = (&device.gpu, x.len());
    let plan = match RunLength::new(n).variant(variant).plan::<T>(gpu) {
        Err(e) if e.kind() == ErrorKind::Unsupported => return,
        other => other.unwrap(),
    };
    let before = T::from_f64(9.0);
    let (input, values) = (gpu.upload(x).unwrap(), gpu.upload(&vec![before; n]).unwrap());
    let (counts, count) = (gpu.alloc_zeroed::<u32>(n).unwrap(), gpu.upload(&[99u32]).unwrap());
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &input, &values, &counts, &count).unwrap();
    rec.submit().unwrap();
    let want = run_length(x);
    let what = format!("{}: {n} {} by {variant}", device.label, T::DTYPE);
    assert!(read_counted(&values, &count, before).unwrap() == want.0, "values, {what}");
    assert!(read_counted(&counts, &count, 0).unwrap() == want.1, "counts, {what}");
}

#[test]
fn runs_of_any_length_cross_tiles() {
    // Heads at the ends of tiles and subgroups, and tiles without one between.
    let lengths = [1023, 1, 1024, 2, 4096, 4095, 3, 8192, 31, 32, 33, 63, 1, 20_000, 1, 1, 1];
    let mut x = Vec::new();
    for (i, length) in lengths.iter().cycle().take(60).enumerate() {
        x.extend(std::iter::repeat_n(i as u32, *length));
    }
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        check(device, variant, &x);
    }
}
