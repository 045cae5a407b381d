//! `Syr2` against the reference.

use super::symv::{Way, refuses};
use super::syr::every_packing;
use crate::support::{Device, Random, assert_close, gpu, numbers};
use tilework::prelude::*;
use tilework::reference::{syr2, syr2_bound};

fn check(device: &Device, n: usize, way: Way, upper: bool, alpha: f32) {
    let (gpu, mut random) = (&device.gpu, Random::new(n as u64));
    let op = Syr2::new(n).alpha(alpha).when(upper, Syr2::upper);
    let op = match way {
        Way::Apart(more) => op.lda(n + more),
        Way::Packed => op.packed(),
        _ => op,
    };
    let a = way.matrix(&mut random, n, upper, false);
    let (x, y): (Vec<f32>, Vec<f32>) = (random.elements(n), random.elements(n));
    let (dx, dy, da) = (gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap(), gpu.upload(&a).unwrap());
    let mut rec = gpu.recorder();
    op.plan::<f32>(gpu).unwrap().record(&mut rec, &dx, &dy, &da).unwrap();
    rec.submit().unwrap();
    let what = format!("{}: {n} {way:?} upper: {upper} by {alpha}", device.label);
    let bound: Vec<f64> = syr2_bound(&op, &x, &y, &a).iter().map(|b| 2.0 * b).collect();
    assert_close(&what, &numbers(&da.read().unwrap()), &syr2(&op, &x, &y, &a), &bound);
}

#[test]
fn updates_match_the_reference_in_every_packing() {
    every_packing(check);
}

#[test]
fn syr2_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    refuses(gpu, |case| match case {
        "variant" => Syr2::new(4).variant("fast"),
        "lda" => Syr2::new(4).lda(3),
        "lda of packed" => Syr2::new(4).packed().lda(4),
        "large" => Syr2::new(usize::MAX).packed(),
        _ => Syr2::new(1 << 16),
    });
}
