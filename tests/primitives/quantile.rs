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
            let op = Quantile::new(n, some);
            let (input, output) = (gpu.upload(&x).unwrap(), gpu.upload(&[9.0f32; 7]).unwrap());
            let mut rec = gpu.recorder();
            let plan = op.plan::<f32>(gpu).unwrap();
            plan.record(&mut rec, &input, output.slice(..6).unwrap()).unwrap();
            rec.submit().unwrap();
            let got = numbers(&output.read().unwrap());
            let what = format!("{}: {n}", device.label);
            assert_close(&what, &got[..6], &quantile(&op, &x), &quantile_bound(&op, &x));
            assert_eq!(got[6], 9.0, "{what}: behind the output");
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
    assert_eq!(kind(Quantile::new(5, [0.5]).variant("sort")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Quantile::new(usize::MAX, [0.5])), ErrorKind::TooLarge);
}
