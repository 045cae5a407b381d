//! Every variant of `GemmBatched` against the reference.

use crate::support::coverage::{all, sample, turn};
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::dense::Activation;
use tilework::dense::ThreadTile;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{gemm_batched, gemm_batched_bound};
use tilework::{Element, ErrorKind, Result};

/// The variants that accept m x n, without those on cooperative matrices, which are tested in `gemm_coop`.
fn names(m: usize, n: usize) -> impl Iterator<Item = &'static str> {
    let exact = GemmBatched::variants().iter().filter(|v| !v.requires.cooperative);
    let all = std::iter::once("auto").chain(exact.map(|v| v.name));
    all.filter(move |&v| v != "small" || m.max(n) <= 64)
}

/// MatrixLayout A, B and C.
struct Data<T> {
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<T>,
}

/// Extents, ways to store the operands, and the gap between matrices; `None` shares one A and one B.
#[derive(Clone, Copy, Debug)]
struct Shape {
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
    trans: [bool; 2],
    gap: Option<usize>,
}

impl Shape {
    fn op(self) -> GemmBatched {
        let Self { batch, m, n, k, trans: [trans_a, trans_b], gap } = self;
        let op = GemmBatched::new(batch, m, n, k).when(trans_a, |op| op.trans_a()).when(trans_b, |op| op.trans_b());
        match gap {
            Some(0) => op,
            Some(gap) => op.strides(m * k + gap, k * n + gap, m * n + gap),
            None => op.strides(0, 0, m * n),
        }
    }

    fn random<T: Sample>(self, seed: u64) -> Data<T> {
        let Self { batch, m, n, k, gap, .. } = self;
        let mut random = Random::new(seed);
        let mut stored = |size: usize, repeats: bool| {
            let len = match (repeats, size * batch) {
                (_, 0) => 0,
                (true, _) => size,
                (false, _) => (batch - 1) * (size + gap.unwrap_or(0)) + size,
            };
            random.elements(len)
        };
        Data { a: stored(m * k, gap.is_none()), b: stored(k * n, gap.is_none()), c: stored(m * n, false) }
    }
}

/// Each of the four ways to store the operands.
const WAYS: [[bool; 2]; 4] = [[false, false], [false, true], [true, false], [true, true]];

fn run<T: Element>(gpu: &Gpu, op: &GemmBatched, data: &Data<T>) -> Result<Vec<T>>
where
    GemmBatched: Op<T>,
{
    let (a, b, c) = (gpu.upload(&data.a)?, gpu.upload(&data.b)?, gpu.upload(&data.c)?);
    let mut rec = gpu.recorder();
    op.plan::<T>(gpu)?.record(&mut rec, &a, &b, &c)?;
    rec.submit()?;
    c.read()
}

/// Runs `op` in these variants and compares all of C, gaps between matrices included.
fn check_in<'a, T: Sample + Into<f64>>(
    device: &Device, variants: impl IntoIterator<Item = &'a str>, op: &GemmBatched, data: &Data<T>,
) where
    GemmBatched: Op<T>,
{
    let want = gemm_batched(op, &data.a, &data.b, None, &data.c).unwrap();
    let bound = gemm_batched_bound(op, &data.a, &data.b, None, &data.c).unwrap();
    let bound = device.product_bound::<T>(bound);
    for variant in variants {
        let got = run(&device.gpu, &op.clone().variant(variant), data).unwrap();
        let what = format!("{}: {} {variant} {op:?}", device.label, T::DTYPE);
        assert_close(&what, &numbers(&got), &want, &bound);
    }
}

/// Batch, m, n and k: around thread tiles, workgroups of several products, slices of k and whole matrices.
const SHAPES: [[usize; 4]; 18] = [
    [1, 1, 1, 1],
    [100, 1, 1, 1],
    [7, 1, 17, 3],
    [17, 4, 4, 4],
    [65, 4, 4, 5],
    [5, 3, 2, 4],
    [9, 8, 8, 8],
    [33, 5, 9, 7],
    [3, 16, 16, 16],
    [5, 15, 17, 33],
    [3, 12, 20, 16],
    [2, 31, 33, 32],
    [3, 32, 32, 32],
    [2, 33, 1, 64],
    [2, 64, 64, 64],
    [2, 63, 61, 65],
    [3, 4, 64, 40],
    [2, 64, 4, 129],
];

/// Larger than the tiles of `register`, with whole and partial tiles.
const LARGE: [[usize; 4]; 4] = [[2, 65, 67, 33], [3, 64, 128, 16], [2, 130, 36, 20], [2, 1, 300, 5]];

#[test]
fn every_variant_matches_reference_in_every_shape_and_transpose() {
    for device in devices() {
        let (small, large) = if device.main { (&SHAPES[..], &LARGE[..]) } else { (&SHAPES[9..13], &LARGE[..1]) };
        for (i, &[batch, m, n, k]) in small.iter().chain(large).enumerate().filter(|(i, _)| turn(*i, 5)) {
            // Two of the ways for each shape, in the short run one of them; the other two for the shape after next.
            let ways = WAYS.into_iter().enumerate().filter(|(j, _)| (i / 2 + j) % 2 == 0);
            for (j, trans) in ways.skip(if all() { 0 } else { i % 2 }).take(if all() { 2 } else { 1 }) {
                let gap = [Some(0), Some(3), Some(4), None][(i + j) % 4];
                let shape = Shape { batch, m, n, k, trans, gap };
                check_in::<f32>(device, names(m, n), &shape.op(), &shape.random(i as u64));
                if device.gpu.profile().features.f16 && j < 2 && turn(i / 2, 2) {
                    check_in::<f16>(device, names(m, n), &shape.op(), &shape.random(i as u64));
                }
            }
        }
    }
}

#[test]
fn factors_match_reference_in_every_variant() {
    for device in devices() {
        for (i, [m, n, k]) in [[19, 35, 21], [20, 36, 24]].into_iter().enumerate() {
            let factors = [(1.0, 0.0), (-2.5, 1.0), (0.0, 0.5), (0.5, -1.0), (0.0, 0.0)];
            for (_, (alpha, beta)) in factors.into_iter().enumerate().filter(|(j, _)| turn(i + j, 5)) {
                let gap = Some(4 * i);
                let shape = Shape { batch: 3, m, n, k, trans: [false, true], gap };
                let op = shape.op().alpha(alpha).beta(beta);
                check_in::<f32>(device, names(m, n), &op, &shape.random(i as u64));
                if device.gpu.profile().features.f16 && turn(i, 2) {
                    check_in::<f16>(device, names(m, n), &op, &shape.random(i as u64));
                }
            }
        }
    }
}

/// Runs `op`, with any layout of its operands, in all variants on random data.
fn check_laid_out<T: Sample + Into<f64>>(device: &Device, m: usize, n: usize, op: &GemmBatched)
where
    GemmBatched: Op<T>,
{
    let program = Op::<T>::lower(op, device.gpu.profile()).unwrap();
    let mut random = Random::new(m as u64);
    let [a, b, c] = [0, 1, 2].map(|i| random.elements::<T>(program.operands[i].len));
    check_in(device, names(m, n), op, &Data { a, b, c });
}

#[test]
fn batch_strides_may_leave_gaps_pack_or_overlap() {
    for device in devices() {
        let extents = [[3, 20, 12, 8], [4, 17, 9, 13], [2, 68, 72, 12], [3, 5, 66, 7]];
        for &[batch, m, n, k] in sample(&extents, 1) {
            let op = GemmBatched::new(batch, m, n, k).beta(0.5);
            let ways = [
                // Gaps between rows, multiples of four or not.
                op.clone().lda(k + 4).ldb(n + 8).ldc(n + 4),
                op.clone().lda(k + 1).ldb(n + 3).ldc(n + 2),
                // All matrices side by side, like the heads of attention, packed and with gaps.
                op.clone().lda(batch * k).ldb(batch * n).ldc(batch * n).strides(k, n, n),
                op.clone().trans_b().ldb(batch * k).ldc(batch * (n + 1)).strides(k, k, n + 1),
                // Overlapping windows over one row of A; one B for all products.
                op.clone().lda(1.max(k)).strides(4, 0, m * n),
                op.clone().trans_a().lda(m + 4).strides(m, 1, m * n + 4),
            ];
            let chosen = ways.iter().enumerate().filter(|(i, _)| turn(i + m, 2));
            for (i, op) in chosen.filter(|(i, _)| device.main || *i == 2) {
                check_laid_out::<f32>(device, m, n, op);
                if i == 2 && device.gpu.profile().features.f16 {
                    check_laid_out::<f16>(device, m, n, op);
                }
            }
        }
    }
}

#[test]
fn activations_match_reference_in_every_variant() {
    let Some(device) = devices().first() else { return };
    for (i, &activation) in sample(&Activation::ALL, 2).iter().enumerate() {
        let shape = Shape { batch: 3, m: 20, n: 12 + i, k: 9, trans: [false, false], gap: Some(0) };
        let op = shape.op().activation(activation).beta(-1.0);
        check_in::<f32>(device, names(20, 16), &op, &shape.random(i as u64));
        // No product, only the epilogue.
        let op = op.alpha(0.0);
        check_in::<f32>(device, names(20, 16), &op, &shape.random(i as u64));
    }
}

#[test]
fn alpha_and_beta_of_an_operand_match_reference_in_every_variant() {
    for device in devices() {
        for [batch, m, n, k] in [[3, 36, 24, 8], [2, 21, 33, 13]] {
            for variant in names(m, n).filter(|v| device.main || ["auto", "register"].contains(v)) {
                let shape = Shape { batch, m, n, k, trans: [false, false], gap: Some(0) };
                let Data { a, b, c } = shape.random::<f32>(1);
                let op = shape.op().alpha(2.0).beta(-0.5);
                let want = gemm_batched(&op, &a, &b, None, &c).unwrap();
                let bound = gemm_batched_bound(&op, &a, &b, None, &c).unwrap();
                let [a, b, c] = [a, b, c].map(|x| device.gpu.upload(&x).unwrap());
                let scalars = device.gpu.upload(&[2.0f32, -0.5]).unwrap();
                let plan = shape.op().with_scalars().variant(variant).plan::<f32>(&device.gpu).unwrap();
                let mut rec = device.gpu.recorder();
                plan.with_scalars(&scalars).record(&mut rec, &a, &b, &c).unwrap();
                rec.submit().unwrap();
                let what = format!("{}: {variant} {shape:?}", device.label);
                assert_close(&what, &numbers(&c.read().unwrap()), &want, &bound);
            }
        }
    }
}

#[test]
fn a_row_or_column_bias_matches_reference_in_every_variant() {
    for device in devices() {
        for [batch, m, n, k] in [[3, 36, 24, 8], [2, 21, 33, 13]] {
            let all = names(m, n).filter(|v| device.main || ["auto", "register"].contains(v));
            let ways = all.flat_map(|v| [(v, false), (v, true)]).enumerate();
            for (_, (variant, of_rows)) in ways.filter(|(i, _)| turn(i + m, 2)) {
                let op = GemmBatched::new(batch, m, n, k).beta(-0.5).variant(variant);
                let op = if of_rows { op.with_row_bias() } else { op.with_bias() };
                let shape = Shape { batch, m, n, k, trans: [false, false], gap: Some(0) };
                let Data { a, b, c } = shape.random::<f32>(1);
                let bias = Random::new(2).elements::<f32>(if of_rows { m } else { n });
                let want = gemm_batched(&op, &a, &b, Some(&bias), &c).unwrap();
                let bound = gemm_batched_bound(&op, &a, &b, Some(&bias), &c).unwrap();
                let [a, b, bias, c] = [a, b, bias, c].map(|x| device.gpu.upload(&x).unwrap());
                let mut rec = device.gpu.recorder();
                op.plan::<f32>(&device.gpu).unwrap().with_bias(&bias).record(&mut rec, &a, &b, &c).unwrap();
                rec.submit().unwrap();
                let what = format!("{}: {op:?}", device.label);
                assert_close(&what, &numbers(&c.read().unwrap()), &want, &bound);
            }
        }
    }
}

#[test]
fn f16_operands_with_f32_results_match_reference_in_every_variant() {
    for device in devices().iter().filter(|d| d.gpu.profile().features.f16) {
        for (i, [batch, m, n, k]) in [[3, 36, 24, 8], [2, 21, 33, 13]].into_iter().enumerate() {
            let names = names(m, n).enumerate().filter(|(v, _)| turn(v + i, 2));
            for variant in names.map(|(_, name)| name).filter(|v| device.main || *v == "auto") {
                let op = GemmBatched::new(batch, m, n, k).beta(1.0).when(i == 1, |op| op.trans_b()).variant(variant);
                let shape = Shape { batch, m, n, k, trans: [false, i == 1], gap: Some(0) };
                let Data { a, b, .. } = shape.random::<f16>(1);
                // More than f16 holds.
                let mut c = shape.random::<f32>(2).c;
                c.iter_mut().for_each(|x| *x *= 1e6);
                let bias = Random::new(3).elements::<f32>(n);
                let want = gemm_batched(&op, &a, &b, Some(&bias), &c).unwrap();
                let bound = gemm_batched_bound(&op, &a, &b, Some(&bias), &c).unwrap();
                let bound = device.product_bound::<f16>(bound);
                let plain = gemm_batched(&op, &a, &b, None, &c).unwrap();
                let what = format!("{}: {op:?}", device.label);
                let (on_c, other_c) = (device.gpu.upload(&c).unwrap(), device.gpu.upload(&c).unwrap());
                let [a, b] = [a, b].map(|x| device.gpu.upload(&x).unwrap());
                let bias = device.gpu.upload(&bias).unwrap();
                let mut rec = device.gpu.recorder();
                let biased = op.clone().with_bias().mixed_precision().plan::<f16>(&device.gpu).unwrap();
                biased.with_bias(&bias).record(&mut rec, &a, &b, &on_c).unwrap();
                let unbiased = op.mixed_precision().plan::<f16>(&device.gpu).unwrap();
                unbiased.record(&mut rec, &a, &b, &other_c).unwrap();
                rec.submit().unwrap();
                assert_close(&what, &numbers(&on_c.read().unwrap()), &want, &bound);
                // The bound with a bias also holds without one.
                assert_close(&what, &numbers(&other_c.read().unwrap()), &plain, &bound);
            }
        }
    }
}

#[test]
fn any_number_of_products_per_workgroup_matches_reference() {
    let Some(device) = devices().first() else { return };
    for &products in sample(&[3, 16, 1, 2, 7], 2) {
        let shape = Shape { batch: 11, m: 12, n: 8, k: 13, trans: [true, false], gap: Some(1) };
        check_in::<f32>(device, ["small"], &shape.op().products(products), &shape.random(products.into()));
    }
    for (i, &[rows, columns]) in sample(&[[8, 4], [12, 16], [4, 8], [8, 8]], 2).iter().enumerate() {
        for &[m, n, k] in sample(&[[29, 40, 33], [32, 32, 32]], 1) {
            let shape = Shape { batch: 5, m, n, k, trans: WAYS[i], gap: Some(0) };
            let op = shape.op().products(2).thread_tile(ThreadTile { rows, columns });
            check_in::<f32>(device, ["small"], &op, &shape.random(i as u64));
        }
    }
}

#[test]
fn a_batch_beyond_one_dispatch_dimension_matches_reference() {
    let Some(device) = devices().first() else { return };
    let shape = Shape { batch: 70_000, m: 4, n: 4, k: 4, trans: [false, false], gap: Some(0) };
    // One product per workgroup: the grid is folded over two dimensions.
    check_in::<f32>(device, ["auto", "small", "register"], &shape.op().products(1), &shape.random(1));
}

#[test]
fn extents_of_zero_follow_the_definition() {
    for (device, variant) in devices().iter().flat_map(|d| names(0, 0).map(move |v| (d, v))) {
        for [batch, m, n, k] in [[0, 4, 4, 4], [3, 0, 4, 4], [3, 4, 0, 4], [0, 0, 0, 0]] {
            let shape = Shape { batch, m, n, k, trans: [false, false], gap: Some(0) };
            let op = shape.op().variant(variant);
            assert_eq!(run::<f32>(&device.gpu, &op, &shape.random(1)).unwrap(), [0.0; 0], "{}", device.label);
        }
        let data = Data { a: vec![], b: vec![], c: vec![2.0f32, 4.0, 6.0, 8.0] };
        let op = GemmBatched::new(2, 1, 2, 0).variant(variant);
        assert_eq!(run(&device.gpu, &op.clone().beta(0.5), &data).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(run(&device.gpu, &op, &data).unwrap(), [0.0; 4]);
    }
}

#[test]
fn beta_zero_never_reads_c_and_alpha_zero_never_reads_a_and_b() {
    let nan = f32::NAN;
    // Variants take turns with the next test.
    let names = || names(2, 2).enumerate().filter(|(v, _)| turn(*v, 2)).map(|(_, name)| name);
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        let op = GemmBatched::new(2, 2, 2, 2).strides(4, 0, 4).variant(variant);
        let a: Vec<f32> = (1..9u8).map(f32::from).collect();
        let data = Data { a: a.clone(), b: vec![1.0, 0.0, 0.0, 1.0], c: vec![nan; 8] };
        assert_eq!(run(&device.gpu, &op, &data).unwrap(), a, "{}: {variant}", device.label);
        let data = Data { a: vec![nan; 8], b: vec![f32::INFINITY; 4], c: vec![5.0; 8] };
        let got = run(&device.gpu, &op.alpha(0.0).beta(2.0), &data).unwrap();
        assert_eq!(got, [10.0; 8], "{}: {variant}", device.label);
    }
}

#[test]
fn nan_and_infinities_stay_in_their_row_and_matrix() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    // Variants take turns with the last test.
    let names = || names(6, 6).enumerate().filter(|(v, _)| turn(v + 1, 2)).map(|(_, name)| name);
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        let shape = Shape { batch: 3, m: 6, n: 6, k: 6, trans: [false, false], gap: Some(0) };
        let mut data = shape.random::<f32>(3);
        data.a[36 + 2 * 6 + 5] = nan;
        data.a[36 + 3 * 6 + 1] = inf;
        let got = run(&device.gpu, &shape.op().variant(variant), &data).unwrap();
        for (i, x) in got.iter().enumerate() {
            let fits = match i / 6 {
                8 => x.is_nan(),
                9 => *x == inf * data.b[36 + 6 + i % 6].signum(),
                _ => x.is_finite(),
            };
            assert!(fits, "{}: {variant}: element {i} is {x}", device.label);
        }
    }
}

#[test]
fn rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: GemmBatched| op.plan::<f32>(gpu).unwrap_err().kind();
    let op = GemmBatched::new(2, 4, 4, 4);
    assert_eq!(kind(op.clone().strides(16, 16, 15)), ErrorKind::InvalidArgument);
    assert_eq!(kind(op.clone().ldc(7).strides(0, 0, 4)), ErrorKind::InvalidArgument);
    assert_eq!(kind(op.clone().lda(3)), ErrorKind::InvalidArgument);
    assert_eq!(kind(op.clone().variant("fastest")), ErrorKind::InvalidArgument);
    assert_eq!(kind(GemmBatched::new(2, 65, 4, 4).variant("small")), ErrorKind::InvalidArgument);
    assert_eq!(kind(op.variant("small").products(100_000)), ErrorKind::TooLarge);
    assert_eq!(kind(GemmBatched::new(1 << 40, 4, 4, 4)), ErrorKind::TooLarge);
    let x = |n: usize| gpu.upload(&vec![1.0f32; n]).unwrap();
    let (a, b, c) = (x(12), x(24), x(16));
    let plan = GemmBatched::new(2, 2, 4, 3).plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    let mut kind = |a, b, c| plan.record(&mut rec, a, b, c).unwrap_err().kind();
    assert_eq!(kind(&b, &b, &c), ErrorKind::Shape);
    assert_eq!(kind(&a, &a, &c), ErrorKind::Shape);
    assert_eq!(kind(&a, &b, &a), ErrorKind::Shape);
    let square = GemmBatched::new(2, 2, 2, 2).plan::<f32>(gpu).unwrap();
    let (one, other) = (x(8), x(8));
    let e = square.record(&mut gpu.recorder(), &one, &other, &one).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Aliasing, "{e}");
    square.record(&mut gpu.recorder(), &one, &one, &other).unwrap();
}
