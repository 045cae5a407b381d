//! `Symm` against the reference.

use super::trsm::{SHAPES, triangle};
use crate::nn::training::refusal;
use crate::support::coverage::sample;
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{symm, symm_bound};

fn check(device: &Device, [m, n]: [usize; 2], [right, upper]: [bool; 2], [alpha, beta]: [f32; 2]) {
    let gpu = &device.gpu;
    let side = if right { n } else { m };
    let gap = if upper { 3 } else { 0 };
    let mut random = Random::new((m * n + side) as u64);
    let mut a = triangle(&mut random, side, side + gap, upper, false);
    a.truncate((side * (side + gap)).saturating_sub(gap));
    let len = if m * n == 0 { 0 } else { m * (n + gap) - gap };
    let (b, mut c): (Vec<f32>, Vec<f32>) = (random.elements(len), random.elements(len));
    if beta == 0.0 {
        c.fill(f32::NAN);
    }
    let op = Symm::new(m, n).alpha(alpha).beta(beta).lda(side + gap).ldb(n + gap).ldc(n + gap);
    let op = op.when(right, Symm::right).when(upper, Symm::upper);
    let (da, db, dc) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap(), gpu.upload(&c).unwrap());
    let plan = op.plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &da, &db, &dc).unwrap();
    rec.submit().unwrap();
    let got = numbers(&dc.read().unwrap());
    let (want, bound) = (symm(&op, &a, &b, &c).unwrap(), symm_bound(&op, &a, &b, &c).unwrap());
    let what = format!("{}: {m} x {n} by {alpha}, {beta}, right: {right}, upper: {upper}", device.label);
    assert_close(&what, &got, &want, &bound);
}

#[test]
fn symm_matches_reference_for_every_triangle_and_shape() {
    for device in devices() {
        for &shape in sample(&SHAPES, 2) {
            for way in [[false, false], [true, false], [false, true], [true, true]] {
                check(device, shape, way, if way[1] { [-0.5, 2.0] } else { [1.0, 0.0] });
            }
        }
        for (shape, scalars) in [([4, 0], [1.0, 0.0]), ([0, 4], [1.0, 0.0]), ([3, 5], [0.0, 0.5])] {
            check(device, shape, [false; 2], scalars);
        }
    }
}

#[test]
fn symm_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Symm::new(4, 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Symm::new(4, 4).ldb(3)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Symm::new(usize::MAX, 2)), ErrorKind::TooLarge);
}
