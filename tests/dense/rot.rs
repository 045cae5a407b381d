//! `Rot` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{rot, rot_bound};

fn check<T: Sample>(device: &Device, n: usize, op: &Rot, matrix: [f64; 4], rotation: Option<[f32; 2]>)
where
    Rot: Op<T>,
{
    let (gpu, mut random) = (&device.gpu, Random::new(n as u64));
    let (x, y): (Vec<T>, Vec<T>) = (random.elements(n + 3), random.elements(n + 3));
    let (dx, dy) = (gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap());
    let (sx, sy) = (dx.slice(..n).unwrap(), dy.slice(..n).unwrap());
    let (plan, mut rec) = (op.plan::<T>(gpu).unwrap(), gpu.recorder());
    match rotation {
        Some(rotation) => {
            let rotation = gpu.upload(&rotation).unwrap();
            plan.with_rotation(&rotation).record(&mut rec, sx, sy).unwrap();
        }
        None => plan.record(&mut rec, sx, sy).unwrap(),
    }
    rec.submit().unwrap();
    let (want, bound) = (rot(matrix, &x[..n], &y[..n]), rot_bound(matrix, &x[..n], &y[..n]));
    for (at, (got, before)) in [(dx, &x), (dy, &y)].into_iter().enumerate() {
        let got = numbers(&got.read().unwrap());
        let what = format!("{}: {n} {} by {matrix:?}, vector {at}", device.label, T::DTYPE);
        let rounded: Vec<T> = want[at].iter().map(|x| T::from_f64(*x)).collect();
        let bound: Vec<f64> = bound[at].iter().map(|b| 2.0 * b).collect();
        assert_close(&what, &got[..n], &numbers(&rounded), &bound);
        assert_eq!(got[n..], numbers(&before[n..]), "{what}: behind the vector");
    }
}

#[test]
fn rotations_match_the_reference() {
    for device in devices() {
        for n in [0, 1, 2, 255, 5001] {
            let op = Rot::new(n, 0.6, -0.8);
            let matrix = [0.6f32, -0.8, 0.8, 0.6].map(f64::from);
            check::<f32>(device, n, &op, matrix, None);
            check::<f16>(device, n, &op, matrix, None);
            let given = Rot::new(n, 9.0, 9.0).with_rotation();
            check::<f32>(device, n, &given, matrix, Some([0.6, -0.8]));
        }
    }
}

#[test]
fn modified_rotations_take_what_the_flag_says() {
    for device in devices() {
        for (flag, matrix) in [
            (-1.0, [2.0, 4.0, 3.0, 5.0]),
            (0.0, [1.0, 4.0, 3.0, 1.0]),
            (1.0, [2.0, 1.0, -1.0, 5.0]),
            (-2.0, [1.0, 0.0, 0.0, 1.0]),
        ] {
            check::<f32>(device, 300, &Rot::modified(300, [flag, 2.0, 3.0, 4.0, 5.0]), matrix, None);
        }
    }
}

#[test]
fn rot_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Rot::new(4, 1.0, 0.0).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f16>(gpu, &Rot::new(usize::MAX, 0.0, 1.0)), ErrorKind::TooLarge);
    let (x, plan) = (gpu.alloc::<f32>(4).unwrap(), Rot::new(4, 0.0, 1.0).plan::<f32>(gpu).unwrap());
    assert_eq!(plan.record(&mut gpu.recorder(), &x, &x).unwrap_err().kind(), ErrorKind::Aliasing);
}
