//! Every variant of `Unique` against the reference.

use super::select::{cases, read_counted};
use crate::support::Sample;
use half::f16;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::unique;
use tilework::{ErrorKind, Gpu};

/// The runs, or `None` if the device lacks the variant. Compared by bits, so that -0 and NaN count.
fn run<T: Sample + PartialEq>(gpu: &Gpu, variant: &str, x: &[T]) -> Option<Vec<T>>
where
    Unique: Op<T>,
{
    let plan = match Unique::new(x.len()).variant(variant).plan::<T>(gpu) {
        Err(e) if e.kind() == ErrorKind::Unsupported => return None,
        other => other.unwrap(),
    };
    let before = T::from_f64(9.0);
    let (input, output) = (gpu.upload(x).unwrap(), gpu.upload(&vec![before; x.len()]).unwrap());
    let count = gpu.upload(&[99u32]).unwrap();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &input, &output, &count).unwrap();
    rec.submit().unwrap();
    Some(read_counted(&output, &count, before).unwrap())
}

#[test]
fn floats_are_compared_by_value_and_keep_their_bits() {
    let nan = f32::NAN;
    let tiny = f32::from_bits(1);
    let x = [0.0, -0.0, 0.0, nan, nan, 1.0, 1.0, -0.0, 0.0, tiny, 0.0, -tiny, f32::INFINITY, f32::INFINITY];
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    for (device, variant) in cases() {
        let Some(got) = run(&device.gpu, variant, &x) else { continue };
        assert_eq!(bits(&got), bits(&unique(&x)), "{}: {variant}", device.label);
        let x = x.map(|x| if x == tiny { f16::from_bits(1) } else { f16::from_f32(x) });
        let bits = |x: &[f16]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let got = run(&device.gpu, variant, &x).unwrap();
        assert_eq!(bits(&got), bits(&unique(&x)), "{}: f16 by {variant}", device.label);
    }
}
