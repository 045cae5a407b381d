//! `Cgemv` against the reference.

use crate::nn::training::refusal;
use crate::support::{Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{cgemv, cgemv_bound};

#[test]
fn products_match_the_reference() {
    for device in devices() {
        let gpu = &device.gpu;
        for (m, k) in [(1, 1), (3, 5), (64, 64), (1, 4000), (4000, 1), (301, 77), (0, 4), (4, 0)] {
            for form in 0..4 {
                let (trans, conjugated) = (form % 2 == 1, form / 2 == 1);
                let (terms, outputs) = if trans { (m, k) } else { (k, m) };
                let mut random = Random::new((m * 7 + k) as u64);
                let mut draw = |n: usize| random.elements::<f32>(2 * n);
                let (a, x, y) = (draw(m * k), draw(terms), draw(outputs + 1));
                let op = Cgemv::new(m, k).when(trans, Cgemv::trans).when(conjugated, Cgemv::conjugated);
                let op = if form == 0 { op } else { op.alpha([0.5, -2.0]).beta([1.5, 0.25 * form as f32]) };
                let (da, dx, dy) = (gpu.upload(&a).unwrap(), gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap());
                let mut rec = gpu.recorder();
                let plan = op.plan::<f32>(gpu).unwrap();
                plan.record(&mut rec, &da, &dx, dy.slice(..2 * outputs).unwrap()).unwrap();
                rec.submit().unwrap();
                let got = numbers(&dy.read().unwrap());
                let what = format!("{}: {op:?}", device.label);
                let (want, bound) = (cgemv(&op, &a, &x, &y), cgemv_bound(&op, &a, &x, &y));
                assert_close(&what, &got[..2 * outputs], &want, &bound);
                assert_eq!(got[2 * outputs..], numbers(&y[2 * outputs..]), "{what}: behind y");
            }
        }
    }
}

/// As BLAS: what is multiplied by 0 is not read.
#[test]
fn factors_of_0_hide_nan() {
    for device in devices() {
        let gpu = &device.gpu;
        let (nan, one) = (gpu.upload(&[f32::NAN; 4]).unwrap(), gpu.upload(&[1.0f32, 0.0, 0.0, 1.0]).unwrap());
        let y = gpu.upload(&[f32::NAN, f32::NAN]).unwrap();
        let mut rec = gpu.recorder();
        let plan = Cgemv::new(1, 2).plan::<f32>(gpu).unwrap();
        plan.record(&mut rec, &one, &one, &y).unwrap();
        rec.submit().unwrap();
        assert_eq!(y.read().unwrap(), [0.0, 0.0], "{}", device.label); // 1 * 1 + i * i
        let mut rec = gpu.recorder();
        let plan = Cgemv::new(1, 2).alpha([0.0; 2]).beta([0.0, 2.0]).plan::<f32>(gpu).unwrap();
        let old = gpu.upload(&[3.0f32, 1.0]).unwrap();
        plan.record(&mut rec, &nan, &nan, &old).unwrap();
        rec.submit().unwrap();
        assert_eq!(old.read().unwrap(), [-2.0, 6.0], "{}", device.label);
    }
}

#[test]
fn cgemv_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Cgemv::new(4, 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Cgemv::new(usize::MAX, 2)), ErrorKind::TooLarge);
    assert_eq!(refusal::<f32>(gpu, &Cgemv::new(2, usize::MAX)), ErrorKind::TooLarge);
}
