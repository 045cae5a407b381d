//! `Trmv` against the reference, in each packing.

use super::symv::{Way, refuses, ways};
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::prelude::*;
use tilework::reference::{trmv, trmv_bound};

fn check(device: &Device, n: usize, way: Way, [upper, trans, unit]: [bool; 3]) {
    let (gpu, mut random) = (&device.gpu, Random::new(n as u64));
    let op = Trmv::new(n).when(upper, Trmv::upper).when(trans, Trmv::trans).when(unit, Trmv::unit);
    let op = match way {
        Way::Rows => op,
        Way::Apart(more) => op.lda(n + more),
        Way::Packed => op.packed(),
        Way::Band(k) => op.banded(k),
    };
    let a = way.matrix(&mut random, n, upper, unit);
    let x: Vec<f32> = random.elements(n);
    let (da, dx, dy) = (gpu.upload(&a).unwrap(), gpu.upload(&x).unwrap(), gpu.alloc::<f32>(n).unwrap());
    let mut rec = gpu.recorder();
    op.plan::<f32>(gpu).unwrap().record(&mut rec, &da, &dx, &dy).unwrap();
    rec.submit().unwrap();
    let what = format!("{}: {n} {way:?} upper: {upper} trans: {trans} unit: {unit}", device.label);
    let (want, bound) = (trmv(&op, &a, &x).unwrap(), trmv_bound(&op, &a, &x).unwrap());
    assert_close(&what, &numbers(&dy.read().unwrap()), &want, &bound.iter().map(|b| 2.0 * b).collect::<Vec<_>>());
}

#[test]
fn products_match_the_reference_in_every_packing() {
    for device in devices() {
        for n in [1, 2, 33, 100] {
            for (way, bits) in ways(n).into_iter().flat_map(|way| (0..8).map(move |bits| (way, bits))) {
                check(device, n, way, [0, 1, 2].map(|bit| bits >> bit & 1 == 1));
            }
        }
        check(device, 0, Way::Packed, [false; 3]);
        check(device, 1100, Way::Packed, [false, true, false]);
    }
}

#[test]
fn trmv_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    refuses(gpu, |case| match case {
        "variant" => Trmv::new(4).variant("fast"),
        "lda" => Trmv::new(4).banded(2).lda(2),
        "lda of packed" => Trmv::new(4).packed().lda(4),
        "large" => Trmv::new(usize::MAX).packed(),
        _ => Trmv::new(1 << 30).banded(3),
    });
}
