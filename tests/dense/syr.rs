//! `Syr` against the reference.

use super::symv::{Way, refuses};
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::prelude::*;
use tilework::reference::{syr, syr_bound};

fn check(device: &Device, n: usize, way: Way, upper: bool, alpha: f32) {
    let (gpu, mut random) = (&device.gpu, Random::new(n as u64));
    let op = Syr::new(n).alpha(alpha).when(upper, Syr::upper);
    let op = match way {
        Way::Apart(more) => op.lda(n + more),
        Way::Packed => op.packed(),
        _ => op,
    };
    // What is not stored is NaN and stays so.
    let a = way.matrix(&mut random, n, upper, false);
    let x: Vec<f32> = random.elements(n);
    let (dx, da) = (gpu.upload(&x).unwrap(), gpu.upload(&a).unwrap());
    let mut rec = gpu.recorder();
    op.plan::<f32>(gpu).unwrap().record(&mut rec, &dx, &da).unwrap();
    rec.submit().unwrap();
    let what = format!("{}: {n} {way:?} upper: {upper} by {alpha}", device.label);
    let bound: Vec<f64> = syr_bound(&op, &x, &a).iter().map(|b| 2.0 * b).collect();
    assert_close(&what, &numbers(&da.read().unwrap()), &syr(&op, &x, &a), &bound);
}

/// Runs updates of every size and packing.
pub(super) fn every_packing(check: fn(&Device, usize, Way, bool, f32)) {
    for device in devices() {
        for n in [0, 1, 2, 17, 130] {
            for way in [Way::Rows, Way::Apart(5), Way::Packed] {
                check(device, n, way, false, 1.0);
                check(device, n, way, true, -0.5);
            }
        }
        check(device, 5, Way::Rows, false, 0.0);
    }
}

#[test]
fn updates_match_the_reference_in_every_packing() {
    every_packing(check);
}

#[test]
fn syr_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    refuses(gpu, |case| match case {
        "variant" => Syr::new(4).variant("fast"),
        "lda" => Syr::new(4).lda(3),
        "lda of packed" => Syr::new(4).packed().lda(4),
        "large" => Syr::new(usize::MAX),
        _ => Syr::new(1 << 16).packed(),
    });
}
