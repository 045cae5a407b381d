//! Every variant of `Gemm` against the reference.

use crate::support::coverage::{all, sample, turn};
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::dense::Activation;
use tilework::dense::ProductTile;
use tilework::dense::ThreadTile;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{gemm, gemm_bound};
use tilework::{Element, ErrorKind, Result};

/// Variants that compute in f32; those on cooperative matrices are tested in `gemm_coop`.
fn names() -> impl Iterator<Item = &'static str> {
    let strict = Gemm::variants().iter().filter(|v| !v.requires.cooperative);
    std::iter::once("auto").chain(strict.map(|v| v.name))
}

/// The operands of a product: stored A, B, bias (empty for none) and C.
struct Data<T> {
    a: Vec<T>,
    b: Vec<T>,
    bias: Vec<T>,
    c: Vec<T>,
}

impl<T: Sample> Data<T> {
    /// Random elements; the leading dimension of A, B and C is `gap` more than their row length.
    fn random(seed: u64, shape: Shape, gap: usize, bias: bool) -> Self {
        let Shape { m, n, k, trans_a, trans_b } = shape;
        let mut random = Random::new(seed);
        let mut stored = |rows: usize, cols: usize| {
            let len = if rows * cols == 0 { 0 } else { (rows - 1) * (cols + gap) + cols };
            random.elements(len)
        };
        let a = if trans_a { stored(k, m) } else { stored(m, k) };
        let b = if trans_b { stored(n, k) } else { stored(k, n) };
        Self { a, b, c: stored(m, n), bias: if bias { stored(1, n) } else { Vec::new() } }
    }
}

/// Extents and how the operands are stored.
#[derive(Clone, Copy, Debug)]
struct Shape {
    m: usize,
    n: usize,
    k: usize,
    trans_a: bool,
    trans_b: bool,
}

impl Shape {
    /// Each of the four ways to store the operands.
    fn all(m: usize, n: usize, k: usize) -> impl Iterator<Item = Self> {
        let ways = [(false, false), (false, true), (true, false), (true, true)];
        ways.into_iter().map(move |(trans_a, trans_b)| Self { m, n, k, trans_a, trans_b })
    }

    fn op(self, gap: usize) -> Gemm {
        let Self { m, n, k, trans_a, trans_b } = self;
        let op = Gemm::new(m, n, k).when(trans_a, |op| op.trans_a()).when(trans_b, |op| op.trans_b());
        if gap == 0 {
            return op;
        }
        let (row_a, row_b) = (if trans_a { m } else { k }, if trans_b { k } else { n });
        op.lda(row_a + gap).ldb(row_b + gap).ldc(n + gap)
    }
}

/// C after `op`, with the bias if there is one.
fn run<T: Element>(gpu: &Gpu, op: &Gemm, data: &Data<T>) -> Result<Vec<T>>
where
    Gemm: Op<T>,
{
    let [a, b, bias, c] = [&data.a, &data.b, &data.bias, &data.c].map(|x| gpu.upload(x));
    let (a, b, bias, c) = (a?, b?, bias?, c?);
    let mut rec = gpu.recorder();
    if data.bias.is_empty() {
        op.plan::<T>(gpu)?.record(&mut rec, &a, &b, &c)?;
    } else {
        op.clone().with_bias().plan::<T>(gpu)?.with_bias(&bias).record(&mut rec, &a, &b, &c)?;
    }
    rec.submit()?;
    c.read()
}

/// Runs `op` on a device in these variants and compares all of C, gaps between rows included.
fn check_in<T: Sample + Into<f64>>(device: &Device, variants: &[&str], op: &Gemm, data: &Data<T>)
where
    Gemm: Op<T>,
{
    let bias = Some(data.bias.as_slice()).filter(|b| !b.is_empty());
    let want = gemm(op, &data.a, &data.b, bias, &data.c).unwrap();
    let bound = device.product_bound::<T>(gemm_bound(op, &data.a, &data.b, bias, &data.c).unwrap());
    for variant in variants {
        let got = run(&device.gpu, &op.clone().variant(variant), data).unwrap();
        let what = format!("{}: {} {variant} {op:?}", device.label, T::DTYPE);
        assert_close(&what, &numbers(&got), &want, &bound);
    }
}

/// Variants with short kernels: they run the long lists.
const SHORT: [&str; 7] = ["auto", "naive", "tiled", "coarsened", "register-direct", "register-staged", "unstaged"];
/// Variants with unrolled inner loops, each form of which compiles slowly.
const LONG: [&str; 4] = ["register", "double", "split-k", "split-k-atomic"];

/// Around every tile size, and shapes that are long in one extent.
const EXTENTS: [(usize, usize, usize); 14] = [
    (1, 1, 1),
    (1, 17, 3),
    (2, 3, 5),
    (15, 16, 17),
    (16, 16, 16),
    (17, 15, 33),
    (31, 1, 64),
    (1, 130, 1),
    (33, 65, 7),
    (64, 64, 64),
    (100, 3, 129),
    (3, 200, 31),
    (5, 7, 1000),
    (129, 67, 95),
];

/// Extents that are not multiples of four, and extents that all are: two forms of a register-tiled kernel for
/// each way to store the operands.
const ODD: [(usize, usize, usize); 6] =
    [(1, 1, 1), (15, 17, 13), (63, 65, 127), (65, 127, 5), (129, 63, 3), (17, 129, 63)];
const FOURS: [(usize, usize, usize); 6] =
    [(4, 4, 4), (16, 16, 16), (128, 64, 8), (64, 20, 124), (12, 128, 4), (36, 68, 64)];

#[test]
fn short_variants_match_reference_in_every_shape_and_transpose() {
    for device in devices() {
        let extents = if device.main { &EXTENTS[..] } else { &EXTENTS[4..7] };
        // In the default run two of the four ways to store the operands, by turns.
        let shapes = extents.iter().flat_map(|&(m, n, k)| Shape::all(m, n, k)).enumerate();
        for (i, shape) in shapes.filter(|(i, _)| turn(i / 4 + i % 4, 2)) {
            let gap = [0, 3][i % 2];
            let data = Data::random(i as u64, shape, gap, false);
            check_in::<f32>(device, &SHORT, &shape.op(gap), &data);
            if device.gpu.profile().features.f16 && turn(i / 4 + i, 3) {
                let data = Data::random(i as u64, shape, 3 - gap, false);
                check_in::<f16>(device, &SHORT, &shape.op(3 - gap), &data);
            }
        }
    }
}

#[test]
fn register_tiled_variants_match_reference_in_every_shape_and_transpose() {
    for device in devices() {
        for (i, list) in [ODD, FOURS].into_iter().enumerate() {
            // The gap keeps odd rows odd and multiples of four multiples of four.
            let gap = 4 * i;
            for (m, n, k) in if device.main { &list[..] } else { &list[..2] } {
                for (way, shape) in Shape::all(*m, *n, *k).enumerate() {
                    // Split variants load like `register` and `double`.
                    let variants = match (device.main, way) {
                        (true, 0) => &LONG[..],
                        (true, _) if all() => &LONG[..2],
                        (true, _) => &LONG[(way + i) % 2..][..1],
                        (false, 1) => &LONG[1..3],
                        (false, _) => &[],
                    };
                    let op = shape.op(gap).slices(3);
                    check_in::<f32>(device, variants, &op, &Data::random(i as u64, shape, gap, false));
                }
            }
        }
    }
}

#[test]
fn register_tiles_of_mixed_operands_match_reference() {
    let Some(device) = devices().first() else { return };
    let square = |trans_a, trans_b| Shape { m: 33, n: 36, k: 42, trans_a, trans_b };
    // One of A, B and C at a time is read or written as vec4s.
    for (shape, [lda, ldb, ldc]) in [
        (square(true, false), [33, 36, 37]),
        (Shape { k: 44, ..square(false, true) }, [44, 45, 38]),
        (Shape { k: 44, ..square(true, true) }, [33, 44, 36]),
    ] {
        let op = shape.op(0).lda(lda).ldb(ldb).ldc(ldc).beta(0.5);
        let gap = ldc - shape.n;
        let mut data = Data::<f32>::random(7, shape, 8, true);
        let (rows_a, row_a) = if shape.trans_a { (shape.k, shape.m) } else { (shape.m, shape.k) };
        let (rows_b, row_b) = if shape.trans_b { (shape.n, shape.k) } else { (shape.k, shape.n) };
        data.a.truncate((rows_a - 1) * lda + row_a);
        data.b.truncate((rows_b - 1) * ldb + row_b);
        data.c.truncate((shape.m - 1) * (shape.n + gap) + shape.n);
        check_in(device, &["double", "unstaged"], &op, &data);
    }
}

#[test]
fn f16_matches_reference_in_register_tiled_variants() {
    for device in devices().iter().filter(|d| d.main && d.gpu.profile().features.f16) {
        for (m, n, k, variants) in [(65, 31, 37, &LONG[..2]), (36, 68, 64, &LONG[1..])] {
            let shape = Shape { m, n, k, trans_a: false, trans_b: n == 68 };
            check_in::<f16>(device, variants, &shape.op(4), &Data::random(5, shape, 4, true));
        }
    }
}

#[test]
fn register_tiles_of_any_size_match_reference() {
    let Some(device) = devices().first() else { return };
    let tiles = [
        // Loads by some of the threads only, patches of one column, and a fully used thread tile.
        ([16, 32, 4], [8, 4]),
        ([12, 20, 12], [4, 4]),
        ([32, 8, 8], [4, 8]),
        ([16, 48, 4], [4, 12]),
    ];
    for (i, &(tile, thread)) in sample(&tiles, 3).iter().enumerate() {
        let [m, n, k] = tile;
        let shape = Shape { m: 53, n: 60, k: 39 + i, trans_a: i % 2 == 1, trans_b: i / 2 == 1 };
        let op =
            shape.op(0).tile(ProductTile { m, n, k }).thread_tile(ThreadTile { rows: thread[0], columns: thread[1] });
        let op = op.when(i == 2, |op| op.rolled()).workgroup_vectors(i % 2 == 1);
        let variants = [LONG[i % 2], "unstaged"];
        check_in::<f32>(device, &variants, &op, &Data::random(i as u64, shape, 0, true));
    }
    let shape = Shape { m: 20, n: 30, k: 17, trans_a: false, trans_b: false };
    for columns in [2, 4] {
        let op = shape.op(0).tile(ProductTile { m: 8, n: 12, k: 5 }).thread_tile(ThreadTile { rows: 1, columns });
        check_in::<f32>(device, &["coarsened"], &op, &Data::random(9, shape, 0, true));
    }
}

#[test]
fn rows_of_any_width_match_reference_rolled_and_unrolled() {
    let Some(device) = devices().first() else { return };
    let tiles = [([16, 4, 4], 4), ([8, 16, 5], 16), ([64, 24, 1], 24), ([40, 64, 7], 64)];
    for (i, &([m, n, k], columns)) in sample(&tiles, 1).iter().enumerate() {
        let shapes = Shape::all(53, 60 + i, 39 + i).enumerate();
        for (_, shape) in shapes.filter(|(way, _)| all() || *way == i) {
            let tile = shape.op(0).tile(ProductTile { m, n, k });
            let by_thread = shape.op(0).thread_tile(ThreadTile { rows: 1, columns });
            for op in [tile.clone().rolled(), tile.unrolled(), by_thread] {
                check_in::<f32>(device, &SHORT[4..6], &op, &Data::random(i as u64, shape, 0, true));
            }
        }
    }
}

#[test]
fn slices_of_k_match_reference() {
    let Some(device) = devices().first() else { return };
    for (k, slices) in [(1, 1), (7, 100), (64, 3), (1001, 7), (1001, 1)] {
        let shape = Shape { m: 5, n: 19, k, trans_a: false, trans_b: false };
        let op = shape.op(0).slices(slices).beta(-1.0).activation(Activation::Relu);
        let op = op.when(k == 64, |op| op.rolled());
        check_in::<f32>(device, &LONG[2..], &op, &Data::random(k as u64, shape, 0, false));
    }
}

#[test]
fn factors_bias_and_activations_match_reference() {
    let shape = Shape { m: 19, n: 35, k: 21, trans_a: false, trans_b: true };
    for device in devices() {
        let factors = [(1.0, 0.0), (-2.5, 1.0), (0.0, 0.5), (0.5, -1.0), (0.0, 0.0)];
        for (i, (alpha, beta)) in factors.into_iter().enumerate() {
            for (j, activation) in
                Activation::ALL.into_iter().enumerate().filter(|(j, _)| device.main && turn(i + j, 3) || *j == i)
            {
                let op = shape.op(2).alpha(alpha).beta(beta).activation(activation);
                let seed = (10 * i + j) as u64;
                check_in::<f32>(device, &SHORT[..3], &op, &Data::random(seed, shape, 2, j % 2 == 0));
                if device.gpu.profile().features.f16 {
                    check_in::<f16>(device, &SHORT[..3], &op, &Data::random(seed, shape, 2, j % 2 == 1));
                }
            }
        }
    }
}

/// C of a product with a row or column bias, in mixed types or all f32.
fn run_biased(gpu: &Gpu, op: Gemm, data: &Data<f32>, halves: Option<[&[f16]; 2]>) -> Vec<f32> {
    let (bias, c) = (gpu.upload(&data.bias).unwrap(), gpu.upload(&data.c).unwrap());
    let mut rec = gpu.recorder();
    match halves {
        Some(factors) => {
            let [a, b] = factors.map(|x| gpu.upload(x).unwrap());
            op.mixed_precision().plan::<f16>(gpu).unwrap().with_bias(&bias).record(&mut rec, &a, &b, &c).unwrap();
        }
        None => {
            let [a, b] = [&data.a, &data.b].map(|x| gpu.upload(x).unwrap());
            op.plan::<f32>(gpu).unwrap().with_bias(&bias).record(&mut rec, &a, &b, &c).unwrap();
        }
    }
    rec.submit().unwrap();
    c.read().unwrap()
}

#[test]
fn alpha_and_beta_of_an_operand_match_reference_in_every_variant() {
    for device in devices() {
        let gpu = &device.gpu;
        for (i, (m, n, k)) in [(37, 20, 24), (21, 18, 13), (5, 6, 0)].into_iter().enumerate() {
            let shape = Shape { m, n, k, trans_a: i == 1, trans_b: false };
            let names = names().enumerate().filter(|(v, _)| turn(v + i, 2)).map(|(_, name)| name);
            for variant in names.filter(|v| device.main || SHORT[..2].contains(v)) {
                let given = shape.op(4).alpha(7.0).variant(variant).with_scalars().with_bias();
                let plan = given.plan::<f32>(gpu).unwrap();
                for [alpha, beta] in [[-2.5, 0.5], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]] {
                    let mut data = Data::<f32>::random(i as u64, shape, 4, true);
                    // A NaN that a factor of 0 must stop.
                    if alpha == 0.0 {
                        data.a.fill(f32::NAN);
                    }
                    if beta == 0.0 {
                        data.c.fill(f32::NAN);
                    }
                    let op = shape.op(4).alpha(alpha).beta(beta).with_bias();
                    let bias = Some(&data.bias[..]);
                    let want = gemm(&op, &data.a, &data.b, bias, &data.c).unwrap();
                    let bound = gemm_bound(&op, &data.a, &data.b, bias, &data.c).unwrap();
                    let [a, b, c, bias] = [&data.a, &data.b, &data.c, &data.bias].map(|x| gpu.upload(x).unwrap());
                    let scalars = gpu.upload(&[alpha, beta]).unwrap();
                    let mut rec = gpu.recorder();
                    plan.with_scalars(&scalars).with_bias(&bias).record(&mut rec, &a, &b, &c).unwrap();
                    rec.submit().unwrap();
                    let what = format!("{}: {alpha} {beta} {given:?}", device.label);
                    assert_close(&what, &numbers(&c.read().unwrap()), &want, &bound);
                }
            }
        }
    }
}

#[test]
fn a_row_bias_matches_reference_in_every_variant() {
    for device in devices() {
        // Rows of whole vec4s or not; more rows than columns, which a column bias would not cover.
        for (i, (m, n, k)) in [(37, 20, 24), (21, 18, 13)].into_iter().enumerate() {
            let shape = Shape { m, n, k, trans_a: i == 1, trans_b: false };
            let mut data = Data::<f32>::random(i as u64, shape, 4, false);
            data.bias = Random::new(9).elements(m);
            let names = names().enumerate().filter(|(v, _)| turn(v + i, 3));
            for variant in names.map(|(_, v)| v).filter(|v| device.main || SHORT[..2].contains(v)) {
                let op = shape.op(4).beta(0.5).activation(Activation::Relu).variant(variant).with_row_bias();
                let bias = Some(&data.bias[..]);
                let want = gemm(&op, &data.a, &data.b, bias, &data.c).unwrap();
                let bound = gemm_bound(&op, &data.a, &data.b, bias, &data.c).unwrap();
                let what = format!("{}: {op:?}", device.label);
                let got = run_biased(&device.gpu, op, &data, None);
                assert_close(&what, &numbers(&got), &want, &bound);
            }
        }
        // No product, only the epilogue.
        let data = Data { a: vec![], b: vec![], bias: vec![1.0, 2.0, 3.0], c: vec![0.0f32; 6] };
        let got = run_biased(&device.gpu, Gemm::new(3, 2, 0).with_row_bias(), &data, None);
        assert_eq!(got, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0], "{}", device.label);
    }
}

#[test]
fn f16_operands_with_f32_results_match_reference_in_every_variant() {
    for device in devices().iter().filter(|d| d.gpu.profile().features.f16) {
        for (i, (m, n, k)) in [(36, 24, 40), (33, 21, 19)].into_iter().enumerate() {
            let shape = Shape { m, n, k, trans_a: false, trans_b: i == 1 };
            let mut data = Data::<f32>::random(i as u64, shape, 3 * i, true);
            // Results outside f16: large ones, and small differences of large ones.
            data.c.iter_mut().for_each(|x| *x *= 1e6);
            let [a, b] = [&data.a, &data.b].map(|x| x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>());
            let names = names().enumerate().filter(|(v, _)| turn(v + i, 3));
            for variant in names.map(|(_, v)| v).filter(|v| device.main || SHORT[..2].contains(v)) {
                let op = shape.op(3 * i).beta(1.0).slices(2).variant(variant);
                let what = format!("{}: {op:?}", device.label);
                let (bias, c) = (Some(&data.bias[..]), &data.c);
                let want = gemm(&op, &a, &b, bias, c).unwrap();
                let bound = device.product_bound::<f16>(gemm_bound(&op, &a, &b, bias, c).unwrap());
                let got = run_biased(&device.gpu, op.clone().with_bias(), &data, Some([&a, &b]));
                assert_close(&what, &numbers(&got), &want, &bound);

                let op = op.beta(0.0);
                let want = gemm(&op, &a, &b, None, c).unwrap();
                let bound = device.product_bound::<f16>(gemm_bound(&op, &a, &b, None, c).unwrap());
                let on = [&a, &b].map(|x| device.gpu.upload(x).unwrap());
                let on_c = device.gpu.upload(c).unwrap();
                let mut rec = device.gpu.recorder();
                let plan = op.mixed_precision().plan::<f16>(&device.gpu).unwrap();
                plan.record(&mut rec, &on[0], &on[1], &on_c).unwrap();
                rec.submit().unwrap();
                assert_close(&what, &numbers(&on_c.read().unwrap()), &want, &bound);
            }
        }
    }
}

#[test]
fn every_variant_applies_the_same_epilogue() {
    let Some(device) = devices().first() else { return };
    let shape = Shape { m: 19, n: 36, k: 21, trans_a: false, trans_b: true };
    for (i, variant) in names().enumerate() {
        // Rows of whole vec4s and not, in turns.
        let ways = [(-2.5, 1.0, 4), (0.5, -1.0, 3), (2.0, 0.0, 4)];
        for (_, &(alpha, beta, gap)) in ways.iter().enumerate().filter(|(w, _)| turn(w + i, 3)) {
            let activation = Activation::ALL[i % 5];
            let op = shape.op(gap).alpha(alpha).beta(beta).activation(activation);
            check_in::<f32>(device, &[variant], &op, &Data::random(i as u64, shape, gap, true));
        }
    }
}

#[test]
fn tiles_of_any_size_match_reference() {
    let Some(device) = devices().first() else { return };
    for (i, (m, n, k)) in
        [(1, 1, 1), (8, 8, 4), (4, 32, 9), (32, 8, 64), (16, 16, 1), (3, 5, 7)].into_iter().enumerate()
    {
        for (_, shape) in Shape::all(37, 29, 43).enumerate().filter(|(way, _)| turn(way + i, 4)) {
            let data = Data::random(i as u64, shape, 0, true);
            check_in::<f32>(device, &["auto", "naive", "tiled"], &shape.op(0).tile(ProductTile { m, n, k }), &data);
        }
    }
}

#[test]
fn extents_of_zero_follow_the_definition() {
    for device in devices() {
        for (m, n, k) in [(0, 4, 4), (4, 0, 4), (0, 0, 0)] {
            let op = Gemm::new(m, n, k);
            let data = Data::<f32>::random(1, Shape { m, n, k, trans_a: false, trans_b: false }, 0, false);
            assert_eq!(run(&device.gpu, &op, &data).unwrap(), [0.0; 0]);
        }
        // No products, only the epilogue.
        let data = Data { a: vec![], b: vec![], bias: vec![1.0, -9.0], c: vec![2.0f32, 4.0, 6.0, 8.0] };
        let op = Gemm::new(2, 2, 0).beta(0.5).activation(Activation::Relu);
        assert_eq!(run(&device.gpu, &op, &data).unwrap(), [2.0, 0.0, 4.0, 0.0]);
    }
}

#[test]
fn beta_zero_never_reads_c_and_alpha_zero_never_reads_a_and_b() {
    let nan = f32::NAN;
    // Variants take turns with the next test.
    let names = || names().enumerate().filter(|(v, _)| turn(*v, 2)).map(|(_, name)| name);
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        let op = Gemm::new(2, 2, 2).variant(variant);
        let data = Data { a: vec![1.0, 2.0, 3.0, 4.0], b: vec![1.0, 0.0, 0.0, 1.0], bias: vec![], c: vec![nan; 4] };
        assert_eq!(run(&device.gpu, &op, &data).unwrap(), [1.0, 2.0, 3.0, 4.0], "{}: {variant}", device.label);
        let data = Data { a: vec![nan; 4], b: vec![f32::INFINITY; 4], bias: vec![], c: vec![5.0; 4] };
        let got = run(&device.gpu, &op.clone().alpha(0.0).beta(2.0), &data).unwrap();
        assert_eq!(got, [10.0; 4], "{}: {variant}", device.label);
    }
}

#[test]
fn nan_and_infinities_propagate() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    // Variants take turns with the last test.
    let names = || names().enumerate().filter(|(v, _)| turn(v + 1, 2)).map(|(_, name)| name);
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        let mut data = Data::<f32>::random(3, Shape { m: 20, n: 20, k: 20, trans_a: false, trans_b: false }, 0, false);
        data.a[2 * 20 + 7] = nan;
        data.a[3 * 20 + 1] = inf;
        let got = run(&device.gpu, &Gemm::new(20, 20, 20).variant(variant), &data).unwrap();
        for (i, x) in got.iter().enumerate() {
            let fits = match i / 20 {
                2 => x.is_nan(),
                3 => *x == inf * data.b[20 + i % 20].signum(),
                _ => x.is_finite(),
            };
            assert!(fits, "{}: {variant}: element {i} is {x}", device.label);
        }
    }
}

#[test]
fn a_long_k_is_split_and_summed() {
    let Some(device) = devices().first().filter(|_| all()) else { return };
    // Odd and even numbers of steps, for tiles of 8 and of 16: the variants take turns.
    let cases = [77, 85].map(|more| (1 << 20) + more).map(|k| {
        let data = Data { a: vec![1.0f32; 2 * k], b: vec![0.5; k], bias: vec![3.0], c: vec![1.0, 2.0] };
        (Gemm::new(2, 1, k).alpha(2.0).beta(-1.0), data, k)
    });
    for (variant, (op, data, k)) in names().zip(cases.iter().cycle()) {
        // Most of a large tile would be idle.
        let small = op.clone().variant(variant).tile(ProductTile { m: 16, n: 16, k: 16 });
        let fits = small.plan::<f32>(&device.gpu).is_ok();
        let op = if fits { small } else { op.clone().variant(variant) };
        let got = run(&device.gpu, &op, data).unwrap();
        // Halves of integers below 2^24 add up without rounding.
        let product = *k as f32;
        assert_eq!(got, [product + 2.0, product + 1.0], "{variant}, k = {k}");
    }
}

#[test]
fn rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Gemm| op.plan::<f32>(gpu).unwrap_err().kind();
    assert_eq!(kind(Gemm::new(4, 4, 4).lda(3)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Gemm::new(4, 4, 4).trans_b().ldb(3)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Gemm::new(4, 4, 4).ldc(0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Gemm::new(4, 4, 4).tile(ProductTile { m: 0, n: 4, k: 4 })), ErrorKind::InvalidArgument);
    assert_eq!(kind(Gemm::new(4, 4, 4).tile(ProductTile { m: 1 << 20, n: 4, k: 4 })), ErrorKind::TooLarge);
    let tiled = |variant, [m, n, k]: [u32; 3], [rows, columns]: [u32; 2]| {
        kind(
            Gemm::new(4, 4, 4).variant(variant).tile(ProductTile { m, n, k }).thread_tile(ThreadTile { rows, columns }),
        )
    };
    assert_eq!(tiled("tiled", [16, 16, 16], [1, 2]), ErrorKind::InvalidArgument);
    assert_eq!(tiled("coarsened", [16, 16, 16], [1, 3]), ErrorKind::InvalidArgument);
    for variant in ["register-direct", "register-staged"] {
        assert_eq!(tiled(variant, [16, 32, 4], [1, 16]), ErrorKind::InvalidArgument);
        assert_eq!(tiled(variant, [16, 18, 4], [1, 18]), ErrorKind::InvalidArgument);
        assert_eq!(tiled(variant, [64, 68, 4], [1, 68]), ErrorKind::InvalidArgument);
        assert_eq!(tiled(variant, [15, 32, 4], [1, 32]), ErrorKind::InvalidArgument);
        assert_eq!(tiled(variant, [16, 16, 4], [2, 16]), ErrorKind::InvalidArgument);
        let long = Gemm::new(4, 4, 4).variant(variant).tile(ProductTile { m: 32, n: 64, k: 65 });
        assert_eq!(kind(long.unrolled()), ErrorKind::InvalidArgument);
    }
    assert_eq!(tiled("register", [16, 16, 4], [4, 6]), ErrorKind::InvalidArgument);
    assert_eq!(tiled("double", [18, 16, 4], [4, 4]), ErrorKind::InvalidArgument);
    assert_eq!(tiled("split-k", [16, 16, 5], [4, 4]), ErrorKind::InvalidArgument);
    assert_eq!(tiled("double", [256, 256, 4], [4, 4]), ErrorKind::TooLarge);
    assert_eq!(kind(Gemm::new(4, 4, 4).variant("fastest")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Gemm::new(usize::MAX, 2, 2)), ErrorKind::TooLarge);
    assert_eq!(kind(Gemm::new(1 << 20, 1 << 20, 1)), ErrorKind::TooLarge);
    let x = |n: usize| gpu.upload(&vec![1.0f32; n]).unwrap();
    let (a, b, c) = (x(6), x(12), x(8));
    let plan = Gemm::new(2, 4, 3).plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    let mut kind = |a, b, c| plan.record(&mut rec, a, b, c).unwrap_err().kind();
    assert_eq!(kind(&b, &b, &c), ErrorKind::Shape);
    assert_eq!(kind(&a, &a, &c), ErrorKind::Shape);
    assert_eq!(kind(&a, &b, &a), ErrorKind::Shape);
    let both = x(12);
    let square = Gemm::new(2, 2, 2).plan::<f32>(gpu).unwrap();
    let part = |range: std::ops::Range<usize>| both.slice(range).unwrap();
    let e = square.record(&mut gpu.recorder(), part(0..4), part(0..4), part(0..4)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Aliasing, "{e}");
    // A and B may be one buffer.
    square.record(&mut gpu.recorder(), part(0..4), part(0..4), c.slice(0..4).unwrap()).unwrap();
}

#[test]
fn the_one_line_call_multiplies() {
    for device in devices() {
        let gpu = &device.gpu;
        let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let c = gpu.gemm(&a, &a, 3, 3, 2).unwrap().read().unwrap();
        assert_eq!(c, [9.0, 12.0, 15.0, 19.0, 26.0, 33.0, 29.0, 40.0, 51.0], "{}", device.label);
    }
}
