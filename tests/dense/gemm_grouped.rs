//! `GemmGrouped` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{gemm_grouped, gemm_grouped_bound};

const SHAPES: [[usize; 3]; 6] = [[70, 130, 33], [1, 1, 1], [0, 5, 3], [64, 64, 16], [3, 2, 0], [5, 65, 100]];

/// Where packed matrices begin, and the lengths of the operands.
fn packed(shapes: &[[usize; 3]]) -> (Vec<[usize; 3]>, [usize; 3]) {
    let (mut at, mut begins) = ([0; 3], Vec::new());
    for [m, n, k] in shapes {
        begins.push(at);
        at = [at[0] + m * k, at[1] + k * n, at[2] + m * n];
    }
    (begins, at)
}

fn check(device: &Device, op: &GemmGrouped, begins: &[[usize; 3]], lens: [usize; 3], offsets: bool) {
    let gpu = &device.gpu;
    let mut random = Random::new(3);
    let [a, b, mut c] = lens.map(|len| random.elements::<f32>(len + 1));
    let (a, b) = (&a[..lens[0]], &b[..lens[1]]);
    if !offsets && format!("{op:?}").contains("beta: 0.0") {
        c.fill(f32::NAN);
    }
    let (da, db, dc) = (gpu.upload(a).unwrap(), gpu.upload(b).unwrap(), gpu.upload(&c).unwrap());
    let plan = op.clone().plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    let to = dc.slice(..lens[2]).unwrap();
    if offsets {
        let words: Vec<u32> = begins.iter().flatten().map(|&begin| begin as u32).collect();
        let places = gpu.upload(&words).unwrap();
        plan.with_offsets(&places).record(&mut rec, &da, &db, to).unwrap();
    } else {
        plan.record(&mut rec, &da, &db, to).unwrap();
    }
    rec.submit().unwrap();
    let (there, behind) = c.split_at(lens[2]);
    let mut want = gemm_grouped(op, begins, a, b, there).unwrap();
    let mut bound = gemm_grouped_bound(op, begins, a, b, there).unwrap();
    want.extend(numbers(behind));
    bound.push(0.0);
    assert_close(&format!("{}: {op:?}", device.label), &numbers(&dc.read().unwrap()), &want, &bound);
}

#[test]
fn packed_products_match_the_reference() {
    for device in devices() {
        let (begins, lens) = packed(&SHAPES);
        check(device, &GemmGrouped::new(SHAPES), &begins, lens, false);
        check(device, &GemmGrouped::new(SHAPES).alpha(-0.5).beta(2.0), &begins, lens, false);
        check(device, &GemmGrouped::new(SHAPES).alpha(0.0), &begins, lens, false);
        check(device, &GemmGrouped::new([[0, 0, 0]]), &[[0; 3]], [0; 3], false);
        check(device, &GemmGrouped::new([]), &[], [0; 3], false);
    }
}

/// Shared factors, results in another order, and places outside of the operands.
#[test]
fn products_by_offsets_match_the_reference_and_stay_inside() {
    for device in devices() {
        let shapes = [[20, 30, 40]; 5];
        let lens = [1000, 1500, 3000];
        let wild = u32::MAX as usize;
        let begins = [[200, 300, 1200], [200, 0, 0], [201, 0, 1800], [0, 0, 2401], [wild, wild, 600]];
        for beta in [0.0, 0.5] {
            check(device, &GemmGrouped::new(shapes).with_offsets(lens).beta(beta), &begins, lens, true);
        }
    }
}

#[test]
fn gemm_grouped_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let op = GemmGrouped::new([[2, 2, 2]]);
    assert_eq!(refusal::<f32>(gpu, &op.clone().variant("fast")), ErrorKind::InvalidArgument);
    for shape in [[usize::MAX, 2, 1], [1, 1, usize::MAX], [1 << 40, 1, 0]] {
        assert_eq!(refusal::<f32>(gpu, &GemmGrouped::new([shape])), ErrorKind::TooLarge, "{shape:?}");
    }
    let long = op.with_offsets([usize::MAX, 4, 4]);
    assert_eq!(refusal::<f32>(gpu, &long), ErrorKind::TooLarge);
}
