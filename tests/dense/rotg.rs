//! `Rotg` against the reference.

use crate::nn::training::refusal;
use crate::support::{Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{rotg, rotg_bound};

#[test]
fn rotations_match_the_reference() {
    let mut random = Random::new(5);
    let mut pairs = vec![
        [3.0f32, 4.0],
        [-4.0, 3.0],
        [0.0, -2.0],
        [5.0, 0.0],
        [0.0, 0.0],
        [1.0, -1.0],
        [1e30, 2e30],
        [1e-25, -3e-25],
        [1e-20, 1e20],
        [1e20, 1e-20],
    ];
    pairs.extend((0..20).map(|_| [random.unit() as f32, random.unit() as f32]));
    for device in devices() {
        let gpu = &device.gpu;
        let plan = Rotg::new().plan::<f32>(gpu).unwrap();
        for [x, y] in pairs.iter().copied() {
            let (a, b) = (gpu.upload(&[x]).unwrap(), gpu.upload(&[y]).unwrap());
            let rotation = gpu.alloc::<f32>(2).unwrap();
            let mut rec = gpu.recorder();
            plan.record(&mut rec, &a, &b, &rotation).unwrap();
            rec.submit().unwrap();
            let got = [a.read().unwrap(), b.read().unwrap(), rotation.read().unwrap()].concat();
            let want = rotg(x, y);
            assert_close(&format!("{}: {x} {y}", device.label), &numbers(&got), &want, &rotg_bound(want));
        }
    }
}

/// The rotation of an element stays on the device, and makes the element 0.
#[test]
fn rot_takes_the_rotation_from_the_device() {
    let Some(gpu) = gpu() else { return };
    let (x, y) = (gpu.upload(&[3.0f32, 1.0]).unwrap(), gpu.upload(&[4.0f32, 2.0]).unwrap());
    let (a, b) = (gpu.upload(&[3.0f32]).unwrap(), gpu.upload(&[4.0f32]).unwrap());
    let rotation = gpu.alloc::<f32>(2).unwrap();
    let mut rec = gpu.recorder();
    Rotg::new().plan::<f32>(gpu).unwrap().record(&mut rec, &a, &b, &rotation).unwrap();
    let rot = Rot::new(2, 0.0, 0.0).with_rotation().plan::<f32>(gpu).unwrap();
    rot.with_rotation(&rotation).record(&mut rec, &x, &y).unwrap();
    rec.submit().unwrap();
    let got = [x.read().unwrap(), y.read().unwrap()].concat();
    assert_close("rotg, rot", &numbers(&got), &[5.0, 2.2, 0.0, 0.4], &[2e-6; 4]);
}

#[test]
fn rotg_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Rotg::new().variant("fast")), ErrorKind::InvalidArgument);
    let (two, plan) = (gpu.alloc::<f32>(2).unwrap(), Rotg::new().plan::<f32>(gpu).unwrap());
    let (one, rotation) = (gpu.alloc::<f32>(1).unwrap(), gpu.alloc::<f32>(2).unwrap());
    let refused = plan.record(&mut gpu.recorder(), &two, &one, &rotation);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Shape);
}
