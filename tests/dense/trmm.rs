//! `Trmm` against the reference.

use super::trsm::{SHAPES, triangle, ways};
use crate::nn::training::refusal;
use crate::support::coverage::sample;
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{trmm, trmm_bound};

fn check(device: &Device, [m, n]: [usize; 2], way: [bool; 4], alpha: f32) {
    let ([right, upper, trans, unit], gpu) = (way, &device.gpu);
    let side = if right { n } else { m };
    let gap = if upper { 3 } else { 0 };
    let mut random = Random::new((m * n + side) as u64);
    let mut a = triangle(&mut random, side, side + gap, upper, unit);
    a.truncate((side * (side + gap)).saturating_sub(gap));
    let mut b: Vec<f32> = random.elements(m * (n + gap));
    b.truncate(b.len().saturating_sub(gap));
    let op = Trmm::new(m, n).alpha(alpha).lda(side + gap).ldb(n + gap).ldc(n + 2 * gap);
    let op = op.when(right, Trmm::right).when(upper, Trmm::upper).when(trans, Trmm::trans);
    let op = op.when(unit, Trmm::unit);
    let len = if m * n == 0 { 0 } else { m * (n + 2 * gap) - 2 * gap };
    let (da, db, dc) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap(), gpu.upload(&vec![7.0; len + 3]).unwrap());
    let plan = op.plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &da, &db, dc.slice(..len).unwrap()).unwrap();
    rec.submit().unwrap();
    let got = numbers(&dc.read().unwrap());
    let what = format!("{}: {m} x {n} by {alpha}, right, upper, trans, unit: {way:?}", device.label);
    // Nothing else is written.
    let is_inside = |i: &usize| *i < len && i % (n + 2 * gap) < n;
    assert!((0..len + 3).filter(|i| !is_inside(i)).all(|i| got[i] == 7.0), "{what}: behind C");
    let inside: Vec<f64> = (0..len).filter(is_inside).map(|i| got[i]).collect();
    assert_close(&what, &inside, &trmm(&op, &a, &b), &trmm_bound(&op, &a, &b));
}

#[test]
fn trmm_matches_reference_for_every_triangle_and_shape() {
    for device in devices() {
        for &shape in sample(&SHAPES, 2) {
            for way in ways() {
                check(device, shape, way, if way[2] { -0.5 } else { 1.0 });
            }
        }
        for shape in [[200, 40], [4, 0], [0, 4]] {
            check(device, shape, [false; 4], 2.0);
        }
        check(device, [3, 5], [false; 4], 0.0);
    }
}

#[test]
fn trmm_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Trmm::new(4, 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Trmm::new(4, 4).ldc(3)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Trmm::new(usize::MAX, 2)), ErrorKind::TooLarge);
}
