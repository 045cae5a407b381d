//! Every variant of `GemmInt8` against the reference.

use crate::support::coverage::turn;
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::dense::ProductTile;
use tilework::dense::ThreadTile;
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::quantize::GemmInt8;
use tilework::reference::{Number, gemm_int8, gemm_int8_bound, gemm_int8_scaled};
use tilework::{Activation, ErrorKind};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(GemmInt8::variants().iter().map(|v| v.name))
}

fn run(device: &Device, op: &GemmInt8, a: &[i8], b: &[i8], len: usize) -> Vec<i32> {
    let gpu = &device.gpu;
    let (a, b) = (gpu.upload(a).unwrap(), gpu.upload(b).unwrap());
    let c = gpu.alloc::<i32>(len).unwrap();
    let mut rec = gpu.recorder();
    op.plan::<i32>(gpu).unwrap().record(&mut rec, &a, &b, &c).unwrap();
    rec.submit().unwrap();
    c.read().unwrap()
}

/// Around tile sizes; k a multiple of a vector, of a word, or neither.
const SHAPES: [(usize, usize, usize); 6] =
    [(17, 15, 33), (1, 1, 1), (20, 36, 20), (33, 40, 80), (5, 130, 129), (64, 64, 256)];

#[test]
fn sums_are_exact_in_every_shape() {
    let mut random = Random::new(3);
    for device in devices() {
        let shapes = if device.main { &SHAPES[..] } else { &SHAPES[..1] };
        for (i, &(m, n, k)) in shapes.iter().enumerate() {
            let (a, b) = (random.elements::<i8>(m * k), random.elements::<i8>(k * n));
            for trans_b in [false, true].into_iter().filter(|trans| turn(i + 2 * usize::from(*trans), 3)) {
                let op = GemmInt8::new(m, n, k).when(trans_b, |op| op.trans_b());
                let want = gemm_int8(&op, &a, &b);
                for variant in names().filter(|v| device.main || *v != "register") {
                    let got = run(device, &op.clone().variant(variant), &a, &b, m * n);
                    assert_eq!(got, want, "{}: {variant} {m} x {n} x {k}, {trans_b}", device.label);
                }
            }
        }
    }
}

#[test]
fn sums_near_the_limits_of_i32_are_exact() {
    for device in devices() {
        let k = 131_071;
        let op = GemmInt8::new(1, 2, k).trans_b();
        let b = [vec![-128; k], vec![127; k]].concat();
        for variant in ["naive", "double", "unstaged"] {
            let got = run(device, &op.clone().variant(variant), &vec![-128; k], &b, 2);
            assert_eq!(got, [16384 * 131_071, -16256 * 131_071], "{}: {variant}", device.label);
        }
    }
}

#[test]
fn k_zero_returns_zeros() {
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        for trans_b in [false, true] {
            let op = GemmInt8::new(4, 8, 0).when(trans_b, |op| op.trans_b()).variant(variant);
            assert_eq!(run(device, &op, &[], &[], 32), [0; 32], "{}: {variant} {trans_b}", device.label);
        }
    }
}

/// A product with scales, without a bias and with one.
fn check_scaled<T: Number>(device: &Device, op: &GemmInt8, (m, n, k): (usize, usize, usize))
where
    GemmInt8: Op<T>,
{
    let mut random = Random::new((m * n + k) as u64);
    let gpu = &device.gpu;
    let (a, b) = (random.elements::<i8>(m * k), random.elements::<i8>(k * n));
    let small = |x: Vec<f32>| x.into_iter().map(|x| 0.002 * x).collect::<Vec<_>>();
    let (a_scale, b_scale) = (random.elements::<f32>(m), small(random.elements::<f32>(n)));
    let bias = random.elements::<f32>(n);
    let (da, db) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap());
    let (das, dbs) = (gpu.upload(&a_scale).unwrap(), gpu.upload(&b_scale).unwrap());
    let dbias = gpu.upload(&bias).unwrap();
    for shift in [None, Some(bias.as_slice())] {
        let c = gpu.alloc::<T>(m * n).unwrap();
        let mut rec = gpu.recorder();
        if shift.is_none() {
            op.plan::<T>(gpu).unwrap().with_scales(&das, &dbs).record(&mut rec, &da, &db, &c).unwrap();
        } else {
            let plan = op.clone().with_bias().plan::<T>(gpu).unwrap();
            plan.with_scales(&das, &dbs).with_bias(&dbias).record(&mut rec, &da, &db, &c).unwrap();
        }
        rec.submit().unwrap();
        let want = gemm_int8_scaled(op, [&a, &b], [&a_scale, &b_scale], shift);
        let bound = gemm_int8_bound::<T>(op, [&a, &b], [&a_scale, &b_scale], shift);
        let what = format!("{}: {} {op:?}", device.label, T::DTYPE);
        assert_close(&what, &numbers(&c.read().unwrap()), &want, &bound);
    }
}

#[test]
fn scaled_products_match_reference() {
    for device in devices() {
        let cases = [
            ("naive", (17, 15, 33), Activation::Tanh),
            ("double", (40, 36, 64), Activation::Gelu),
            ("auto", (3, 4, 0), Activation::None),
        ];
        for (variant, shape, activation) in cases.into_iter().take(if device.main { 3 } else { 1 }) {
            let (m, n, k) = shape;
            let op = GemmInt8::new(m, n, k).trans_b().variant(variant).scaled().activation(activation);
            check_scaled::<f32>(device, &op, shape);
            if device.main && device.gpu.profile().features.f16 {
                check_scaled::<f16>(device, &op, shape);
            }
        }
    }
}

#[test]
fn requested_tiles_match_reference() {
    let Some(device) = devices().first() else { return };
    let (m, n, k) = (70, 66, 100);
    let mut random = Random::new(9);
    let (a, b) = (random.elements::<i8>(m * k), random.elements::<i8>(k * n));
    for (variant, tile, thread) in [
        ("tiled", [8, 12, 20], [1, 1]),
        ("register", [16, 32, 16], [4, 8]),
        ("double", [32, 32, 32], [8, 4]),
        ("unstaged", [16, 64, 16], [8, 16]),
    ] {
        let op = GemmInt8::new(m, n, k)
            .tile(ProductTile { m: tile[0], n: tile[1], k: tile[2] })
            .thread_tile(ThreadTile { rows: thread[0], columns: thread[1] });
        let want = gemm_int8(&op, &a, &b);
        assert_eq!(run(device, &op.variant(variant), &a, &b, m * n), want, "{variant}");
    }
}

#[test]
fn empty_input_returns_empty() {
    for device in devices() {
        for (m, n, k) in [(0, 3, 4), (3, 0, 4), (2, 3, 0)] {
            for trans_b in [false, true] {
                let op = GemmInt8::new(m, n, k).when(trans_b, |op| op.trans_b());
                assert_eq!(run(device, &op, &vec![1; m * k], &vec![1; k * n], m * n), vec![0; m * n]);
            }
        }
    }
}

#[test]
fn rejects_invalid_arguments() {
    let h100 = DeviceProfile::h100();
    let kind = |op: GemmInt8| Op::<i32>::lower(&op, &h100).unwrap_err().kind();
    let new = || GemmInt8::new(64, 64, 64);
    assert_eq!(kind(new().variant("fastest")), ErrorKind::InvalidArgument);
    assert_eq!(kind(GemmInt8::new(1, 1, 131_072)), ErrorKind::TooLarge);
    assert_eq!(kind(GemmInt8::new(usize::MAX, 2, 2)), ErrorKind::TooLarge);
    assert_eq!(kind(GemmInt8::new(1 << 17, 1 << 17, 4)), ErrorKind::TooLarge);
    for (tile, thread) in [([64, 64, 8], [4, 4]), ([64, 64, 16], [6, 4]), ([60, 64, 16], [8, 4]), ([0, 64, 16], [4, 4])]
    {
        let op = new()
            .variant("double")
            .tile(ProductTile { m: tile[0], n: tile[1], k: tile[2] })
            .thread_tile(ThreadTile { rows: thread[0], columns: thread[1] });
        assert_eq!(kind(op), ErrorKind::InvalidArgument, "{tile:?} {thread:?}");
    }
    assert_eq!(kind(new().variant("tiled").tile(ProductTile { m: 16, n: 16, k: 6 })), ErrorKind::InvalidArgument);
    assert_eq!(kind(new().variant("tiled").tile(ProductTile { m: 64, n: 64, k: 16 })), ErrorKind::TooLarge);
    assert_eq!(
        kind(new().variant("tiled").tile(ProductTile { m: 1 << 31, n: 1 << 31, k: 1 << 31 })),
        ErrorKind::TooLarge
    );
    assert_eq!(kind(new().variant("double").tile(ProductTile { m: 256, n: 256, k: 64 })), ErrorKind::TooLarge);
    let small = DeviceProfile::webgpu_defaults();
    let e = Op::<f16>::lower(&new().scaled(), &small).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("take f32"), "{e}");

    let Some(gpu) = gpu() else { return };
    let bytes = |n: usize| gpu.upload(&vec![1i8; n]).unwrap();
    let (a, b, c) = (bytes(6), bytes(12), gpu.alloc::<i32>(8).unwrap());
    let plan = GemmInt8::new(2, 4, 3).plan::<i32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &a, &b, &c).unwrap();
    // An operand with a different k.
    assert_eq!(plan.record(&mut rec, &bytes(8), &b, &c).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(plan.record(&mut rec, &a, &bytes(16), &c).unwrap_err().kind(), ErrorKind::Shape);
    rec.submit().unwrap();
}
