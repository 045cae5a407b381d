//! `Gbmv` against the reference.

use super::symv::refuses;
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::prelude::*;
use tilework::reference::{gbmv, gbmv_bound};

fn check(device: &Device, [m, n, kl, ku]: [usize; 4], trans: bool, more: usize, [alpha, beta]: [f32; 2]) {
    let (gpu, mut random) = (&device.gpu, Random::new((m + n) as u64));
    let (width, ld) = (kl + ku + 1, kl + ku + 1 + more);
    let op = Gbmv::new(m, n, kl, ku).alpha(alpha).beta(beta).lda(ld).when(trans, Gbmv::trans);
    let inside = |at: usize| (kl..n + kl).contains(&(at / ld + at % ld)) && at % ld < width;
    let len = if m == 0 || n == 0 { 0 } else { (m - 1) * ld + width };
    let a: Vec<f32> = (0..len).map(|at| if inside(at) { random.unit() as f32 } else { f32::NAN }).collect();
    let (terms, outputs) = if trans { (m, n) } else { (n, m) };
    let (x, y): (Vec<f32>, Vec<f32>) = (random.elements(terms), random.elements(outputs));
    let (da, dx, dy) = (gpu.upload(&a).unwrap(), gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap());
    let mut rec = gpu.recorder();
    op.plan::<f32>(gpu).unwrap().record(&mut rec, &da, &dx, &dy).unwrap();
    rec.submit().unwrap();
    let what = format!("{}: {m} x {n}, {kl} and {ku}, {more} more, trans: {trans}", device.label);
    let (want, bound) = (gbmv(&op, &a, &x, &y).unwrap(), gbmv_bound(&op, &a, &x, &y).unwrap());
    assert_close(&what, &numbers(&dy.read().unwrap()), &want, &bound.iter().map(|b| 2.0 * b).collect::<Vec<_>>());
}

#[test]
fn products_match_the_reference_for_every_band() {
    for device in devices() {
        for trans in [false, true] {
            for shape in [
                [1, 1, 0, 0],
                [5, 5, 1, 2],
                [100, 70, 3, 0],
                [70, 100, 0, 40],
                [33, 32, 50, 60], // wider than the matrix
                [1, 3000, 0, 2999],
                [3000, 1, 2999, 0],
                [700, 700, 1, 1],
            ] {
                check(device, shape, trans, 0, [1.0, 0.0]);
                check(device, shape, trans, 3, [-0.5, 2.0]);
            }
            check(device, [0, 4, 1, 1], trans, 0, [1.0, 2.0]);
            check(device, [4, 0, 1, 1], trans, 0, [1.0, 2.0]);
        }
    }
}

#[test]
fn gbmv_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    refuses(gpu, |case| match case {
        "variant" => Gbmv::new(4, 4, 1, 1).variant("fast"),
        "lda" => Gbmv::new(4, 4, 1, 1).lda(2),
        "lda of packed" => Gbmv::new(4, 4, 1, 1).incy(0),
        "large" => Gbmv::new(4, 4, usize::MAX, usize::MAX),
        _ => Gbmv::new(usize::MAX, usize::MAX, 1, 1),
    });
}
