//! `Ger` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{ger, ger_bound};

fn check<T: Sample>(device: &Device, [m, n]: [usize; 2], alpha: f32)
where
    Ger: Op<T>,
{
    let (gpu, mut random) = (&device.gpu, Random::new((m * n) as u64));
    let (x, y, a): (Vec<T>, Vec<T>, Vec<T>) = (random.elements(m), random.elements(n), random.elements(m * n + 3));
    for outer in [false, true] {
        let op = Ger::new(m, n).alpha(alpha).when(outer, Ger::outer);
        let plan = op.plan::<T>(gpu).unwrap();
        let (dx, dy, da) = (gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap(), gpu.upload(&a).unwrap());
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &dx, &dy, da.slice(..m * n).unwrap()).unwrap();
        rec.submit().unwrap();
        let got = numbers(&da.read().unwrap());
        let before = (!outer).then_some(&a[..m * n]);
        let want: Vec<T> = ger(alpha, &x, &y, before).iter().map(|x| T::from_f64(*x)).collect();
        let bound: Vec<f64> = ger_bound(alpha, &x, &y, before).iter().map(|b| 2.0 * b).collect();
        let what = format!("{}: {m} x {n} {} outer: {outer}", device.label, T::DTYPE);
        assert_close(&what, &got[..m * n], &numbers(&want), &bound);
        assert_eq!(got[m * n..], numbers(&a[m * n..]), "{what}: behind the matrix");
    }
}

#[test]
fn ger_matches_reference_for_every_shape() {
    for device in devices() {
        for shape in [[1, 1], [3, 5], [64, 64], [1, 1027], [301, 7], [0, 4], [4, 0]] {
            check::<f32>(device, shape, 1.0);
            check::<f16>(device, shape, -0.75);
        }
    }
}

#[test]
fn ger_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Ger::new(4, 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f16>(gpu, &Ger::new(usize::MAX, 2)), ErrorKind::TooLarge);
}
