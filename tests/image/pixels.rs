//! Shared by tests of images.

use crate::support::{Device, Sample, assert_close, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;

/// Compares the output with the reference and checks that elements after it are kept. Returns false if the variant
/// does not accept the image or the device.
#[track_caller]
pub(crate) fn check<T: Sample, D: Op<T>>(
    device: &Device, what: &str, op: &D, input: &[T], (want, bound): (&[f64], &[f64]),
) -> bool {
    let plan = match op.plan::<T>(&device.gpu) {
        Err(e) if e.kind() == ErrorKind::Unsupported => return false,
        plan => plan.unwrap().into_executable(),
    };
    let fill = T::from_f64(77.0);
    let padded = want.len().next_multiple_of(4);
    let x = device.gpu.upload(input).unwrap();
    let y = device.gpu.upload(&vec![fill; padded]).unwrap();
    let mut rec = device.gpu.recorder();
    let written = y.slice(..want.len()).unwrap();
    plan.record(&mut rec, &[Slice::from(&x).untyped(), written.untyped()]).unwrap();
    rec.submit().unwrap();
    let got = y.read().unwrap();
    let what = format!("{}: {what}", device.label);
    assert_close(&what, &numbers(&got[..want.len()]), want, bound);
    assert!(got[want.len()..].iter().all(|v| *v == fill), "{what}: wrote past the image");
    true
}
