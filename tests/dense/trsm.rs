//! `Trsm` against the reference.

use crate::nn::training::refusal;
use crate::support::coverage::{sample, turn};
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{trsm, trsm_bound};

/// A system: the extents of B, gaps between rows, and alpha.
#[derive(Debug, Clone, Copy)]
struct System {
    shape: [usize; 2],
    gap: usize,
    alpha: f32,
}

/// Extents of B; the first ones have several blocks and a part of one.
pub(super) const SHAPES: [[usize; 2]; 8] = [[70, 67], [5, 3], [1, 1], [64, 33], [65, 1], [130, 3], [2, 200], [31, 64]];

/// Every way to read A: right, upper, trans, unit.
pub(super) fn ways() -> impl Iterator<Item = [bool; 4]> {
    (0..16).map(|bits| [0, 1, 2, 3].map(|bit| bits >> bit & 1 == 1))
}

fn op_of(System { shape: [m, n], gap, alpha }: System, [right, upper, trans, unit]: [bool; 4]) -> Trsm {
    let side = if right { n } else { m };
    let op = Trsm::new(m, n).alpha(alpha).lda(side + gap).ldb(n + gap);
    op.when(right, Trsm::right).when(upper, Trsm::upper).when(trans, Trsm::trans).when(unit, Trsm::unit)
}

/// A triangle whose inverse is of moderate size. What must not be read is NaN.
pub(super) fn triangle(random: &mut Random, side: usize, ld: usize, upper: bool, unit: bool) -> Vec<f32> {
    let mut a = vec![f32::NAN; side * ld];
    for i in 0..side {
        for j in 0..side {
            let scaled = random.unit() as f32 * 2.0 / side as f32;
            match i == j {
                true if !unit => a[i * ld + j] = (1.0 + scaled.abs()) * scaled.signum(),
                false if (i < j) == upper => a[i * ld + j] = scaled,
                _ => {}
            }
        }
    }
    a
}

fn solve(device: &Device, op: &Trsm, a: &[f32], b: &[f32], len: [usize; 2]) -> Vec<f32> {
    let gpu = &device.gpu;
    let (da, db) = (gpu.upload(a).unwrap(), gpu.upload(b).unwrap());
    let plan = op.plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, da.slice(..len[0]).unwrap(), db.slice(..len[1]).unwrap()).unwrap();
    rec.submit().unwrap();
    db.read().unwrap()
}

fn check(device: &Device, system: System, way: [bool; 4]) {
    let System { shape: [m, n], gap, .. } = system;
    let ([right, upper, _, unit], side) = (way, if way[0] { n } else { m });
    let mut random = Random::new((m * n + side) as u64);
    let a = triangle(&mut random, side, side + gap, upper, unit);
    let b: Vec<f32> = random.elements(m * (n + gap) + 3);
    let op = op_of(system, way);
    let len = [(side * (side + gap)).saturating_sub(gap), (m * (n + gap)).saturating_sub(gap)];
    let got = solve(device, &op, &a, &b, len);
    let what = format!("{}: {system:?} right, upper, trans, unit: {way:?}", device.label);
    assert!(right || side == m);
    assert_close(&what, &numbers(&got), &trsm(&op, &a, &b), &trsm_bound(&op, &a, &b));
}

#[test]
fn trsm_matches_reference_for_every_triangle_and_shape() {
    for device in devices() {
        for &shape in sample(&SHAPES, 1) {
            for (_, way) in ways().enumerate().filter(|(i, _)| turn(i + i / 2 + i / 4 + i / 8, 2)) {
                let gap = if way[1] { 3 } else { 0 };
                let alpha = if way[2] { -0.5 } else { 1.0 };
                check(device, System { shape, gap, alpha }, way);
            }
        }
        check(device, System { shape: [200, 40], gap: 0, alpha: 2.0 }, [false; 4]);
        check(device, System { shape: [4, 0], gap: 0, alpha: 1.0 }, [false; 4]);
    }
}

/// What substitution gives: everything before the zero is right, its own row is infinite.
#[test]
fn trsm_of_singular_matrix_gives_infinities() {
    for device in devices() {
        let (n, zero) = (100, 70);
        let mut random = Random::new(3);
        let mut a = triangle(&mut random, n, n, false, false);
        let b: Vec<f32> = random.elements(2 * n);
        let sound = a.clone();
        a[zero * n + zero] = 0.0;
        let op = Trsm::new(n, 2);
        let got = solve(device, &op, &a, &b, [n * n, 2 * n]);
        let until = 2 * zero;
        let bound = trsm_bound(&op, &sound, &b);
        assert_close(&device.label, &numbers(&got[..until]), &trsm(&op, &sound, &b)[..until], &bound[..until]);
        assert!(got[until..until + 2].iter().all(|x| x.is_infinite()), "{:?}", &got[until..until + 2]);
        assert!(got[until + 2..].iter().all(|x| !x.is_finite()), "{}", device.label);
    }
}

#[test]
fn trsm_with_alpha_0_clears_b_and_reads_nothing() {
    for device in devices() {
        let op = Trsm::new(3, 70).ldb(71).alpha(0.0);
        let mut b = vec![f32::NAN; 3 * 71 - 1];
        b[70] = 7.0;
        let got = solve(device, &op, &[f32::NAN; 9], &b, [9, b.len()]);
        assert!(got.iter().enumerate().all(|(i, x)| i % 71 == 70 || *x == 0.0), "{got:?}");
        assert!(got[70] == 7.0 && got[141].is_nan());
    }
}

#[test]
fn trsm_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Trsm::new(4, 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Trsm::new(4, 4).lda(3)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Trsm::new(4, 4).ldb(3)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Trsm::new(usize::MAX, 2)), ErrorKind::TooLarge);
}
