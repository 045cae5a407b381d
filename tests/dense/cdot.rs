//! `Cdot` against the reference.

use crate::nn::training::refusal;
use crate::support::{Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{cdot, cdot_bound};

#[test]
fn products_match_the_reference() {
    for device in devices() {
        let gpu = &device.gpu;
        // One workgroup, several, and more than a device has at once.
        for n in [0, 1, 255, 2048, 2049, 300_001] {
            let mut random = Random::new(n as u64);
            let (x, y): (Vec<f32>, Vec<f32>) = (random.elements(2 * n), random.elements(2 * n));
            let (dx, dy) = (gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap());
            for conjugated in [false, true] {
                let result = gpu.upload(&[9.0f32; 3]).unwrap();
                let plan = Cdot::new(n).when(conjugated, Cdot::conjugated).plan::<f32>(gpu).unwrap();
                let mut rec = gpu.recorder();
                plan.record(&mut rec, &dx, &dy, result.slice(..2).unwrap()).unwrap();
                rec.submit().unwrap();
                let got = numbers(&result.read().unwrap());
                let what = format!("{}: {n}, conjugated: {conjugated}", device.label);
                assert_close(&what, &got[..2], &cdot(conjugated, &x, &y), &[cdot_bound(&x, &y); 2]);
                assert_eq!(got[2], 9.0, "{what}: behind the result");
            }
        }
    }
}

#[test]
fn cdot_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Cdot::new(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Cdot::new(usize::MAX)), ErrorKind::TooLarge);
}
