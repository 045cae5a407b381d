//! `Quantile` against the reference.

use crate::nn::training::refusal;
use crate::support::{Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{quantile, quantile_bound};

#[test]
fn quantiles_match_the_reference() {
    for device in devices() {
        let gpu = &device.gpu;
        let some = [0.0, 0.1, 0.25, 0.5, 0.999, 1.0];
        for n in [1, 2, 5, 3001] {
            let mut x: Vec<f32> = Random::new(n as u64).elements(n);
            // Equal neighbours, infinities and large numbers.
            x.iter_mut().step_by(3).for_each(|x| *x = 0.5);
            if n > 4 {
                (x[1], x[2], x[4]) = (f32::INFINITY, f32::MAX, -f32::MAX);
            }
            for variant in Quantile::variants() {
                let op = Quantile::new(n, some).variant(variant.name);
                let (input, output) = (gpu.upload(&x).unwrap(), gpu.upload(&[9.0f32; 7]).unwrap());
                let mut rec = gpu.recorder();
                let plan = op.plan::<f32>(gpu).unwrap();
                plan.record(&mut rec, &input, output.slice(..6).unwrap()).unwrap();
                rec.submit().unwrap();
                let got = numbers(&output.read().unwrap());
                let what = format!("{}: {n} by {}", device.label, variant.name);
                assert_close(&what, &got[..6], &quantile(&op, &x), &quantile_bound(&op, &x));
                assert_eq!(got[6], 9.0, "{what}: behind the output");
            }
        }
    }
}

/// Places are products rounded as in f64: a step too far to the right would meet an infinity.
#[test]
fn quantiles_of_a_length_on_the_device_match_the_reference() {
    let mut random = Random::new(5);
    let mut some: Vec<f64> = (0..=30).map(|i| f64::from(i) / 30.0).collect();
    some.extend((0..10).map(|_| random.unit().abs()));
    some.extend([0.7, 0.1, 1.0 / 3.0, 1.0 - f64::EPSILON / 2.0, 1e-9, 2f64.powi(-33), 1e-13, 1e-300, -0.0]);
    let n = 5000;
    for device in devices() {
        let gpu = &device.gpu;
        let op = Quantile::new(n, some.clone()).counted();
        let plan = op.plan::<f32>(gpu).unwrap();
        for there in [0, 1, 2, 3, 11, 31, 101, 4097, 4999, 5000, 5001, u32::MAX] {
            let held = n.min(there as usize);
            for finite in [n, (held.saturating_sub(1) as f64 * 0.7) as usize + 1] {
                let of = |i: usize| if i < finite { i as f32 - 40.0 } else { f32::INFINITY };
                // What lies behind is not read.
                let x: Vec<f32> = (0..n).map(|i| if i < held { of(i) } else { f32::NAN }).collect();
                let (input, output) = (gpu.upload(&x).unwrap(), gpu.alloc::<f32>(some.len()).unwrap());
                let length = gpu.upload(&[there]).unwrap();
                let mut rec = gpu.recorder();
                plan.with_length(&length).record(&mut rec, &input, &output).unwrap();
                rec.submit().unwrap();
                let (got, x) = (numbers(&output.read().unwrap()), &x[..held]);
                let what = format!("{}: {there} of {n}", device.label);
                assert_close(&what, &got, &quantile(&op, x), &quantile_bound(&op, x));
            }
        }
    }
}

#[test]
fn quantile_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op| refusal::<f32>(gpu, &op);
    assert_eq!(kind(Quantile::new(0, [0.5])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Quantile::new(5, [])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Quantile::new(5, vec![0.5; 65])), ErrorKind::InvalidArgument);
    for q in [-0.1, 1.1, f64::NAN] {
        assert_eq!(kind(Quantile::new(5, [q])), ErrorKind::InvalidArgument);
    }
    assert_eq!(kind(Quantile::new(5, [0.5]).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Quantile::new(5, [0.5]).variant("radix").counted()), ErrorKind::Unsupported);
    assert_eq!(kind(Quantile::new(usize::MAX, [0.5])), ErrorKind::TooLarge);
}
