//! `Caxpy` against the reference.

use crate::nn::training::refusal;
use crate::support::{Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{caxpy, caxpy_bound};

#[test]
fn sums_match_the_reference() {
    for device in devices() {
        let gpu = &device.gpu;
        for (n, alpha) in [(0, [1.0, 0.0]), (1, [0.0, 1.0]), (257, [-0.5, 0.25]), (5001, [2.0, -3.0])] {
            let mut random = Random::new(n as u64);
            let (x, y): (Vec<f32>, Vec<f32>) = (random.elements(2 * n), random.elements(2 * n + 1));
            let (dx, dy) = (gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap());
            let mut rec = gpu.recorder();
            let plan = Caxpy::new(n, alpha).plan::<f32>(gpu).unwrap();
            plan.record(&mut rec, &dx, dy.slice(..2 * n).unwrap()).unwrap();
            rec.submit().unwrap();
            let got = numbers(&dy.read().unwrap());
            let (want, bound) = (caxpy(alpha, &x, &y), caxpy_bound(alpha, &x, &y));
            let what = format!("{}: {n} by {alpha:?}", device.label);
            assert_close(&what, &got[..2 * n], &want, &bound);
            assert_eq!(got[2 * n], f64::from(y[2 * n]), "{what}: behind the vector");
        }
    }
}

#[test]
fn caxpy_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Caxpy::new(4, [1.0; 2]).variant("fast")), ErrorKind::InvalidArgument);
    for n in [usize::MAX, usize::MAX / 2] {
        assert_eq!(refusal::<f32>(gpu, &Caxpy::new(n, [1.0; 2])), ErrorKind::TooLarge);
    }
    let odd = gpu.alloc::<f32>(7).unwrap();
    let plan = Caxpy::new(4, [1.0; 2]).plan::<f32>(gpu).unwrap();
    let y = gpu.alloc::<f32>(8).unwrap();
    assert_eq!(plan.record(&mut gpu.recorder(), &odd, &y).unwrap_err().kind(), ErrorKind::Shape);
}
