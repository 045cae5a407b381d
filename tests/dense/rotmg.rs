//! `Rotmg` against the reference.

use crate::nn::training::refusal;
use crate::support::{Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{rotmg, rotmg_bound};

#[test]
fn modified_rotations_match_the_reference() {
    let mut random = Random::new(5);
    let mut cases = vec![
        [0.1f32, 0.3, 1.2, 0.2],
        [0.7, 0.2, 0.6, 4.2],
        [0.0; 4],
        [4.0, 0.0, 3.0, 2.0],
        [4.0, -1.0, 2.0, 4.0],
        [-1.0, 1.0, 2.0, 4.0],
        [6e-10, 2e-2, 1e5, 10.0],
        [4e10, 2e-2, 1e-5, 10.0],
        [2e-10, 4e-2, 1e5, 10.0],
        [2e10, 4e-2, 1e-5, 10.0],
        [4.0, -2.0, 8.0, 4.0],
        [1.0, 1.0, 1.0, 1.0],
        [0.0, 2.0, 1.0, 3.0],
        [2.0, 3.0, 0.0, 3.0],
        [1e-30, 1.0, 1e10, 1.0],
        [1e25, -1e-20, 1.0, 1.0],
    ];
    cases.extend((0..40).map(|_| [0; 4].map(|_| random.unit() as f32 * 8.0)));
    let mut promised = 0;
    for device in devices() {
        let gpu = &device.gpu;
        let plan = Rotmg::new().plan::<f32>(gpu).unwrap();
        for given in cases.iter().copied() {
            let [d1, d2, x1, y1] = given.map(|x| gpu.upload(&[x]).unwrap());
            let param = gpu.alloc::<f32>(5).unwrap();
            let mut rec = gpu.recorder();
            plan.record(&mut rec, &d1, &d2, &x1, &y1, &param).unwrap();
            rec.submit().unwrap();
            let got = [&d1, &d2, &x1, &param].map(|x| numbers(&x.read().unwrap())).concat();
            let (want, bound) = (rotmg(given), rotmg_bound(given));
            promised += usize::from(bound[0].is_finite());
            assert_close(&format!("{}: {given:?}", device.label), &got, &want, &bound);
        }
        assert!(promised > cases.len() * 2 / 3, "{promised}");
    }
}

/// Infinities and NaN end, whatever they give.
#[test]
fn numbers_that_are_none_end() {
    let odd = [f32::INFINITY, f32::NAN, f32::MAX, f32::NEG_INFINITY];
    for device in devices() {
        let gpu = &device.gpu;
        let plan = Rotmg::new().plan::<f32>(gpu).unwrap();
        for (i, x) in odd.into_iter().enumerate() {
            let mut given = [1.0; 4];
            given[i] = x;
            for given in [given, [x; 4]] {
                let [d1, d2, x1, y1] = given.map(|x| gpu.upload(&[x]).unwrap());
                let param = gpu.alloc::<f32>(5).unwrap();
                let mut rec = gpu.recorder();
                plan.record(&mut rec, &d1, &d2, &x1, &y1, &param).unwrap();
                rec.submit().unwrap();
                assert_eq!(param.read().unwrap().len(), 5, "{}", device.label);
            }
        }
    }
}

/// The modified rotation of an element stays on the device, and makes the element 0.
#[test]
fn rot_takes_the_modified_rotation_from_the_device() {
    for device in devices() {
        let gpu = &device.gpu;
        for given in [[1.0f32, 1.0, 1.0, 2.0], [1.0, 1.0, 2.0, 1.0], [6e-10, 2e-2, 1e5, 10.0], [1.0, 0.0, 3.0, 2.0]] {
            let [d1, d2, x1, y1] = given.map(|x| gpu.upload(&[x]).unwrap());
            let (x, y) = (gpu.upload(&[given[2], 3.0]).unwrap(), gpu.upload(&[given[3], -5.0]).unwrap());
            let param = gpu.alloc::<f32>(5).unwrap();
            let mut rec = gpu.recorder();
            Rotmg::new().plan::<f32>(gpu).unwrap().record(&mut rec, &d1, &d2, &x1, &y1, &param).unwrap();
            let rot = Rot::new(2, 0.0, 0.0).with_param().plan::<f32>(gpu).unwrap();
            rot.with_param(&param).record(&mut rec, &x, &y).unwrap();
            rec.submit().unwrap();
            let (got_x, got_y) = (x.read().unwrap(), y.read().unwrap());
            let [_, _, first, flag, h11, h21, h12, h22] = rotmg(given);
            let want = match flag {
                -2.0 => [f64::from(given[2]), 3.0, f64::from(given[3]), -5.0],
                _ => [first, 3.0 * h11 - 5.0 * h12, 0.0, 3.0 * h21 - 5.0 * h22],
            };
            let size = 1e-6 * (h11.abs() + h12.abs() + h21.abs() + h22.abs()) * f64::from(given[2].max(5.0));
            let got = numbers(&[got_x, got_y].concat());
            assert_close(&format!("{}: {given:?}", device.label), &got, &want, &[size; 4]);
        }
    }
}

#[test]
fn rotmg_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Rotmg::new().variant("fast")), ErrorKind::InvalidArgument);
    let (two, plan) = (gpu.alloc::<f32>(2).unwrap(), Rotmg::new().plan::<f32>(gpu).unwrap());
    let [d2, x1, y1] = [(); 3].map(|()| gpu.alloc::<f32>(1).unwrap());
    let param = gpu.alloc::<f32>(5).unwrap();
    let refused = plan.record(&mut gpu.recorder(), &two, &d2, &x1, &y1, &param);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Shape);
}
