//! `Histogram2d` against the reference.

use crate::nn::training::refusal;
use crate::support::{Random, devices, gpu};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::histogram_2d;

#[test]
fn points_match_the_reference() {
    for device in devices() {
        let gpu = &device.gpu;
        for (n, bins, lo, hi) in [
            (5000, [64, 64], [-1.0, -0.5], [1.0, 0.75]),
            (3001, [3, 1], [-0.7, -10.0], [0.1, 10.0]),
            (2000, [100, 50], [0.1, 1e6], [0.3, 1e6 + 1.0]),
            (0, [2, 2], [0.0, 0.0], [1.0, 1.0]),
        ] {
            let mut random = Random::new(n as u64);
            let mut x = random.elements::<f32>(n);
            // On edges, between them, and no numbers.
            x.iter_mut().step_by(3).for_each(|x| *x = (*x * 8.0).round() / 8.0);
            x.iter_mut().skip(1).step_by(97).for_each(|x| *x = f32::NAN);
            let y: Vec<f32> = random.elements::<f32>(n).iter().map(|y| lo[1] as f32 + y.abs()).collect();
            for variant in Histogram2d::variants() {
                let op = Histogram2d::new(n, bins, lo, hi).variant(variant.name);
                let plan = match op.plan::<f32>(gpu) {
                    Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                    plan => plan.unwrap(),
                };
                let counts = gpu.upload(&vec![77u32; bins[0] * bins[1] + 1]).unwrap();
                let (x_in, y_in) = (gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap());
                let mut rec = gpu.recorder();
                plan.record(&mut rec, &x_in, &y_in, counts.slice(..bins[0] * bins[1]).unwrap()).unwrap();
                rec.submit().unwrap();
                let want = [histogram_2d(&op, &x, &y), vec![77]].concat();
                assert_eq!(counts.read().unwrap(), want, "{}: {} {bins:?}", device.label, variant.name);
            }
        }
    }
}

#[test]
fn histogram_2d_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |bins, lo, hi| refusal::<f32>(gpu, &Histogram2d::new(9, bins, [0.0, lo], [1.0, hi]));
    assert_eq!(kind([0, 4], 0.0, 1.0), ErrorKind::InvalidArgument);
    assert_eq!(kind([4, 4], 1.0, 1.0), ErrorKind::InvalidArgument);
    assert_eq!(kind([4, 4], f64::NAN, 1.0), ErrorKind::InvalidArgument);
    assert_eq!(kind([4, 4], 0.0, 1e39), ErrorKind::InvalidArgument);
    assert_eq!(kind([1 << 11, 1 << 10], 0.0, 1.0), ErrorKind::TooLarge);
    assert_eq!(kind([usize::MAX, 3], 0.0, 1.0), ErrorKind::TooLarge);
    let many = Histogram2d::new(9, [65, 64], [0.0; 2], [1.0; 2]);
    assert_eq!(refusal::<f32>(gpu, &many.variant("privatized")), ErrorKind::Unsupported);
    let long = Histogram2d::new(usize::MAX, [4, 4], [0.0; 2], [1.0; 2]);
    assert_eq!(refusal::<f32>(gpu, &long), ErrorKind::TooLarge);
}
