//! `Syrk` against the reference.

use crate::nn::training::refusal;
use crate::support::coverage::{sample, turn};
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{syrk, syrk_bound};

fn check(device: &Device, [n, k]: [usize; 2], [upper, trans]: [bool; 2], [alpha, beta]: [f32; 2]) {
    check_op(device, Syrk::new(n, k).when(upper, Syrk::upper), trans, [n, k], [alpha, beta]);
}

fn check_op(device: &Device, op: Syrk, trans: bool, [n, k]: [usize; 2], [alpha, beta]: [f32; 2]) {
    let gpu = &device.gpu;
    let gap = if trans { 3 } else { 0 };
    let [rows, columns] = if trans { [k, n] } else { [n, k] };
    let mut random = Random::new((n * k) as u64);
    let len = [rows * (columns + gap), n * (n + gap)].map(|len| len.saturating_sub(gap));
    let a: Vec<f32> = random.elements(if n * k == 0 { 0 } else { len[0] });
    let mut c: Vec<f32> = random.elements(len[1] + 3);
    if beta == 0.0 {
        c.fill(f32::NAN);
    }
    let op = op.alpha(alpha).beta(beta).lda(columns + gap).ldc(n + gap).when(trans, Syrk::trans);
    let (da, dc) = (gpu.upload(&a).unwrap(), gpu.upload(&c).unwrap());
    let plan = op.plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &da, dc.slice(..len[1]).unwrap()).unwrap();
    rec.submit().unwrap();
    let got = numbers(&dc.read().unwrap());
    let (want, bound) = (syrk(&op, &a, &c).unwrap(), syrk_bound(&op, &a, &c).unwrap());
    let what = format!("{}: {op:?}", device.label);
    assert_close(&what, &got, &want, &bound);
}

#[test]
fn syrk_matches_reference_and_leaves_the_other_triangle() {
    const SHAPES: [[usize; 2]; 7] = [[70, 33], [5, 3], [1, 1], [64, 64], [33, 1], [128, 20], [17, 300]];
    for device in devices() {
        for (i, &shape) in sample(&SHAPES, 2).iter().enumerate() {
            let ways = [[false, false], [true, false], [false, true], [true, true]].into_iter().enumerate();
            for (_, way) in ways.filter(|(w, _)| turn(w + w / 2 + i, 2)) {
                check(device, shape, way, if i % 2 == 0 { [1.0, 0.0] } else { [-0.5, 2.0] });
            }
        }
        check_op(device, Syrk::new(33, 20).full(), true, [33, 20], [1.0, 0.5]);
        // Nothing to multiply, and sums that go over several dispatches on software drivers.
        check(device, [20, 0], [true, false], [1.0, 0.5]);
        check(device, [20, 7], [false, false], [0.0, 0.0]);
        check(device, [0, 5], [false, false], [1.0, 0.0]);
        check(device, [5, 20_000], [false, false], [1.0, 1.0]);
    }
}

#[test]
fn syrk_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Syrk::new(4, 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Syrk::new(4, 4).lda(3)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Syrk::new(usize::MAX, 2)), ErrorKind::TooLarge);
}
