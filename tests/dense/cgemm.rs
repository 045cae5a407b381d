//! `Cgemm` against the reference.

use crate::nn::training::refusal;
use crate::support::{Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{cgemm, cgemm_bound};

#[test]
fn products_match_the_reference_in_every_form() {
    for device in devices() {
        let gpu = &device.gpu;
        let shapes = [[1, 1, 1], [3, 5, 7], [33, 65, 17], [64, 64, 64], [0, 3, 3], [3, 3, 0]];
        for (at, [m, n, k]) in shapes.into_iter().enumerate() {
            for form in (0..16).filter(|form| at == 1 || form % 5 == at % 5) {
                let on = |bit: usize| form >> bit & 1 == 1;
                let op = Cgemm::new(m, n, k);
                let op = op.when(on(0), Cgemm::trans_a).when(on(1), Cgemm::trans_b);
                let op = op.when(on(2), Cgemm::conjugated_a).when(on(3), Cgemm::conjugated_b);
                let op = match form % 3 {
                    0 => op,
                    1 => op.alpha([-0.5, 0.0]).beta([2.0, 0.0]),
                    _ => op.alpha([0.5, -2.0]).beta([1.5, 0.25]),
                };
                let mut random = Random::new((at * 16 + form) as u64);
                let mut draw = |n: usize| random.elements::<f32>(2 * n);
                let (a, b, c) = (draw(m * k), draw(k * n), draw(m * n + 1));
                let (da, db, dc) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap(), gpu.upload(&c).unwrap());
                let mut rec = gpu.recorder();
                let plan = op.plan::<f32>(gpu).unwrap();
                plan.record(&mut rec, &da, &db, dc.slice(..2 * m * n).unwrap()).unwrap();
                rec.submit().unwrap();
                let got = numbers(&dc.read().unwrap());
                let what = format!("{}: {op:?}", device.label);
                let (want, bound) = (cgemm(&op, &a, &b, &c), cgemm_bound(&op, &a, &b, &c));
                assert_close(&what, &got[..2 * m * n], &want, &bound);
                assert_eq!(got[2 * m * n..], numbers(&c[2 * m * n..]), "{what}: behind c");
            }
        }
    }
}

/// As BLAS: what is multiplied by 0 does not reach the result.
#[test]
fn factors_of_0_hide_nan() {
    for device in devices() {
        let gpu = &device.gpu;
        let nan = gpu.upload(&[f32::NAN; 2]).unwrap();
        let c = gpu.upload(&[3.0f32, 1.0]).unwrap();
        let mut rec = gpu.recorder();
        let plan = Cgemm::new(1, 1, 1).alpha([0.0; 2]).beta([0.0, 2.0]).plan::<f32>(gpu).unwrap();
        plan.record(&mut rec, &nan, &nan, &c).unwrap();
        rec.submit().unwrap();
        assert_eq!(c.read().unwrap(), [-2.0, 6.0], "{}", device.label);
    }
}

#[test]
fn cgemm_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Cgemm::new(4, 4, 4).variant("fast")), ErrorKind::InvalidArgument);
    for [m, n, k] in [[usize::MAX, 2, 2], [2, usize::MAX, 2], [2, 2, usize::MAX], [1 << 20, 1 << 20, 1]] {
        assert_eq!(refusal::<f32>(gpu, &Cgemm::new(m, n, k)), ErrorKind::TooLarge);
    }
}
