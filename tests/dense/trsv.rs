//! `Trsv` against the reference, in each packing.

use super::symv::{Way, refuses, ways};
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::prelude::*;
use tilework::reference::{trsv, trsv_bound};

fn check(device: &Device, n: usize, way: Way, [upper, trans, unit]: [bool; 3], increment: isize) {
    let (gpu, mut random) = (&device.gpu, Random::new(n as u64));
    let op = Trsv::new(n).when(upper, Trsv::upper).when(trans, Trsv::trans).when(unit, Trsv::unit);
    let op = match way {
        Way::Rows => op,
        Way::Apart(more) => op.lda(n + more),
        Way::Packed => op.packed(),
        Way::Band(k) => op.banded(k),
    };
    // Small beside the diagonal, so that solutions stay moderate.
    let mut a = way.matrix(&mut random, n, upper, unit);
    a.iter_mut().for_each(|a| *a /= 16.0);
    if !unit {
        for i in 0..n {
            let at = match way {
                Way::Rows => i * n + i,
                Way::Apart(more) => i * (n + more) + i,
                Way::Packed if upper => (0..i).map(|row| n - row).sum(),
                Way::Packed => i * (i + 1) / 2 + i,
                Way::Band(k) => i * (k + 1) + if upper { 0 } else { k },
            };
            a[at] += if random.unit() < 0.0 { -1.0 } else { 1.0 };
        }
    }
    let b: Vec<f32> = random.elements(n);
    let place = |i: usize| (if increment < 0 { n - 1 - i } else { i }) * increment.unsigned_abs();
    let mut apart = vec![7.0; if n == 0 { 0 } else { (n - 1) * increment.unsigned_abs() + 1 }];
    (0..n).for_each(|i| apart[place(i)] = b[i]);
    let (da, dx) = (gpu.upload(&a).unwrap(), gpu.upload(&apart).unwrap());
    let mut rec = gpu.recorder();
    op.clone().incx(increment).plan::<f32>(gpu).unwrap().record(&mut rec, &da, &dx).unwrap();
    rec.submit().unwrap();
    let got = dx.read().unwrap();
    let got: Vec<f32> = (0..n).map(|i| got[place(i)]).collect();
    let what = format!("{}: {n} {way:?} upper: {upper} trans: {trans} unit: {unit}", device.label);
    let bound: Vec<f64> = trsv_bound(&op, &a, &b).iter().map(|b| 2.0 * b).collect();
    assert_close(&what, &numbers(&got), &trsv(&op, &a, &b), &bound);
}

#[test]
fn solutions_match_the_reference_in_every_packing() {
    for device in devices() {
        for n in [1, 2, 64, 65, 200] {
            for (way, bits) in ways(n).into_iter().flat_map(|way| (0..8).map(move |bits| (way, bits))) {
                check(device, n, way, [0, 1, 2].map(|bit| bits >> bit & 1 == 1), 1);
            }
        }
        check(device, 0, Way::Rows, [false; 3], 1);
        check(device, 130, Way::Packed, [true, false, false], -2);
    }
}

#[test]
fn singular_systems_give_infinities() {
    for device in devices() {
        let gpu = &device.gpu;
        let a = gpu.upload(&[1.0f32, 0.0, 0.0, 0.0]).unwrap();
        let x = gpu.upload(&[2.0f32, 3.0]).unwrap();
        let mut rec = gpu.recorder();
        Trsv::new(2).plan::<f32>(gpu).unwrap().record(&mut rec, &a, &x).unwrap();
        rec.submit().unwrap();
        assert_eq!(x.read().unwrap(), [2.0, f32::INFINITY], "{}", device.label);
    }
}

#[test]
fn trsv_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    refuses(gpu, |case| match case {
        "variant" => Trsv::new(4).variant("fast"),
        "lda" => Trsv::new(4).lda(3),
        "lda of packed" => Trsv::new(4).packed().lda(4),
        "large" => Trsv::new(usize::MAX),
        // More dispatches than a program may have.
        _ => Trsv::new((1 << 21) + 1).banded(1),
    });
}
