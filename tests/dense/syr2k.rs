//! `Syr2k` against the reference.

use crate::nn::training::refusal;
use crate::support::coverage::{sample, turn};
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{syr2k, syr2k_bound};

/// Rows have gaps if they are transposed; one more element of C than there is must stay.
fn check(device: &Device, op: Syr2k, trans: bool, [n, k]: [usize; 2], [alpha, beta]: [f32; 2]) {
    let gpu = &device.gpu;
    let gap = if trans { 3 } else { 0 };
    let [rows, columns] = if trans { [k, n] } else { [n, k] };
    let mut random = Random::new((n * k + 1) as u64);
    let factor = |gap: usize, random: &mut Random| -> Vec<f32> {
        random.elements(if n * k == 0 { 0 } else { rows * (columns + gap) - gap })
    };
    let (a, b) = (factor(gap, &mut random), factor(2 * gap, &mut random));
    let len = (n * (n + gap)).saturating_sub(gap);
    let mut c: Vec<f32> = random.elements(len + 3);
    if beta == 0.0 {
        c.fill(f32::NAN);
    }
    let op = op.alpha(alpha).beta(beta).lda(columns + gap).ldb(columns + 2 * gap).ldc(n + gap);
    let op = op.when(trans, Syr2k::trans);
    let (da, db, dc) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap(), gpu.upload(&c).unwrap());
    let plan = op.plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &da, &db, dc.slice(..len).unwrap()).unwrap();
    rec.submit().unwrap();
    let got = numbers(&dc.read().unwrap());
    let (want, bound) = (syr2k(&op, &a, &b, &c).unwrap(), syr2k_bound(&op, &a, &b, &c).unwrap());
    assert_close(&format!("{}: {op:?}", device.label), &got, &want, &bound);
}

#[test]
fn syr2k_matches_reference_and_leaves_the_other_triangle() {
    const SHAPES: [[usize; 2]; 7] = [[70, 33], [5, 3], [1, 1], [64, 64], [33, 1], [128, 20], [17, 300]];
    for device in devices() {
        for (i, &[n, k]) in sample(&SHAPES, 2).iter().enumerate() {
            let ways = [[false, false], [true, false], [false, true], [true, true]].into_iter().enumerate();
            for (_, [upper, trans]) in ways.filter(|(w, _)| turn(w + w / 2 + i, 2)) {
                let op = Syr2k::new(n, k).when(upper, Syr2k::upper);
                check(device, op, trans, [n, k], if i % 2 == 0 { [1.0, 0.0] } else { [-0.5, 2.0] });
            }
        }
        check(device, Syr2k::new(33, 20).full(), true, [33, 20], [1.0, 0.5]);
        check(device, Syr2k::new(20, 0).upper(), false, [20, 0], [1.0, 0.5]);
        check(device, Syr2k::new(20, 7), false, [20, 7], [0.0, 0.0]);
        check(device, Syr2k::new(0, 5), false, [0, 5], [1.0, 0.0]);
        // Sums that go over several dispatches on software drivers.
        check(device, Syr2k::new(5, 10_000), false, [5, 10_000], [1.0, 1.0]);
    }
}

#[test]
fn syr2k_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Syr2k::new(4, 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Syr2k::new(4, 4).lda(3)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Syr2k::new(4, 4).ldb(3)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Syr2k::new(usize::MAX, 2)), ErrorKind::TooLarge);
    assert_eq!(refusal::<f32>(gpu, &Syr2k::new(2, usize::MAX)), ErrorKind::TooLarge);
}
