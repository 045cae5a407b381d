//! Every variant of `Gemm` against the reference.

use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::dense::{Activation, GemmBias};
use tilework::prelude::*;
use tilework::program::{In, InOut, Op};
use tilework::reference::{gemm, gemm_bound};
use tilework::{Element, ErrorKind, Result};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Gemm::variants().iter().map(|v| v.name))
}

/// What a product works on: stored A, B, bias (empty for none) and C.
struct Data<T> {
    a: Vec<T>,
    b: Vec<T>,
    bias: Vec<T>,
    c: Vec<T>,
}

impl<T: Sample> Data<T> {
    /// Random elements; rows of A, B and C lie `gap` elements further apart than they are long.
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
        let op = Gemm::new(m, n, k).trans_a(trans_a).trans_b(trans_b);
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
    Gemm: Op<T, Operands = (In<T>, In<T>, InOut<T>)>,
    GemmBias: Op<T, Operands = (In<T>, In<T>, In<T>, InOut<T>)>,
{
    let [a, b, bias, c] = [&data.a, &data.b, &data.bias, &data.c].map(|x| gpu.upload(x));
    let (a, b, bias, c) = (a?, b?, bias?, c?);
    let mut rec = gpu.recorder();
    if data.bias.is_empty() {
        op.plan::<T>(gpu)?.record(&mut rec, &a, &b, &c)?;
    } else {
        op.clone().with_bias().plan::<T>(gpu)?.record(&mut rec, &a, &b, &bias, &c)?;
    }
    rec.submit()?;
    c.read()
}

/// Runs `op` on a device in all variants and compares each element of C, those between its rows too.
fn check<T: Sample + Into<f64>>(device: &Device, op: &Gemm, data: &Data<T>)
where
    Gemm: Op<T, Operands = (In<T>, In<T>, InOut<T>)>,
    GemmBias: Op<T, Operands = (In<T>, In<T>, In<T>, InOut<T>)>,
{
    check_in(device, &names().collect::<Vec<_>>(), op, data);
}

/// The same in the variants named.
fn check_in<T: Sample + Into<f64>>(device: &Device, variants: &[&str], op: &Gemm, data: &Data<T>)
where
    Gemm: Op<T, Operands = (In<T>, In<T>, InOut<T>)>,
    GemmBias: Op<T, Operands = (In<T>, In<T>, In<T>, InOut<T>)>,
{
    let bias = Some(data.bias.as_slice()).filter(|b| !b.is_empty());
    let want = gemm(op, &data.a, &data.b, bias, &data.c).unwrap();
    let bound = gemm_bound(op, &data.a, &data.b, bias, &data.c).unwrap();
    for variant in variants {
        let got = run(&device.gpu, &op.clone().variant(variant), data).unwrap();
        let what = format!("{}: {} {variant} {op:?}", device.label, T::DTYPE);
        assert_close(&what, &numbers(&got), &want, &bound);
    }
}

/// Around every side of the tiles, and shapes that are long in one extent only.
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

#[test]
fn every_shape_and_transpose_matches_reference() {
    for device in devices() {
        let extents = if device.main { &EXTENTS[..] } else { &EXTENTS[4..7] };
        for (i, shape) in extents.iter().flat_map(|&(m, n, k)| Shape::all(m, n, k)).enumerate() {
            let gap = [0, 3][i % 2];
            check::<f32>(device, &shape.op(gap), &Data::random(i as u64, shape, gap, false));
            if device.gpu.profile().features.f16 {
                check::<f16>(device, &shape.op(3 - gap), &Data::random(i as u64, shape, 3 - gap, false));
            }
        }
    }
}

#[test]
fn factors_bias_and_activations_match_reference() {
    let shape = Shape { m: 19, n: 35, k: 21, trans_a: false, trans_b: true };
    for device in devices() {
        let factors = [(1.0, 0.0), (-2.5, 1.0), (0.0, 0.5), (0.5, -1.0), (0.0, 0.0)];
        for (i, (alpha, beta)) in factors.into_iter().enumerate() {
            for (j, activation) in
                Activation::ALL.into_iter().enumerate().filter(|(j, _)| device.main || *j == i)
            {
                let op = shape.op(2).alpha(alpha).beta(beta).activation(activation);
                let seed = (10 * i + j) as u64;
                check::<f32>(device, &op, &Data::random(seed, shape, 2, j % 2 == 0));
                if device.gpu.profile().features.f16 {
                    check::<f16>(device, &op, &Data::random(seed, shape, 2, j % 2 == 1));
                }
            }
        }
    }
}

#[test]
fn tiles_of_any_sides_match_reference() {
    let Some(device) = devices().first() else { return };
    for (i, (m, n, k)) in
        [(1, 1, 1), (8, 8, 4), (4, 32, 9), (32, 8, 64), (16, 16, 1), (3, 5, 7)].into_iter().enumerate()
    {
        for shape in Shape::all(37, 29, 43) {
            let data = Data::random(i as u64, shape, 0, true);
            check_in::<f32>(device, &["auto", "naive", "tiled"], &shape.op(0).tile(m, n, k), &data);
        }
    }
}

#[test]
fn extents_of_zero_leave_what_the_definition_says() {
    for device in devices() {
        for (m, n, k) in [(0, 4, 4), (4, 0, 4), (0, 0, 0)] {
            let op = Gemm::new(m, n, k);
            let data = Data::<f32>::random(1, Shape { m, n, k, trans_a: false, trans_b: false }, 0, false);
            assert_eq!(run(&device.gpu, &op, &data).unwrap(), [0.0; 0]);
        }
        // No products: what is left is the end.
        let data = Data { a: vec![], b: vec![], bias: vec![1.0, -9.0], c: vec![2.0f32, 4.0, 6.0, 8.0] };
        let op = Gemm::new(2, 2, 0).beta(0.5).activation(Activation::Relu);
        assert_eq!(run(&device.gpu, &op, &data).unwrap(), [2.0, 0.0, 4.0, 0.0]);
    }
}

#[test]
fn beta_zero_never_reads_c_and_alpha_zero_never_reads_a_and_b() {
    let nan = f32::NAN;
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        let op = Gemm::new(2, 2, 2).variant(variant);
        let data =
            Data { a: vec![1.0, 2.0, 3.0, 4.0], b: vec![1.0, 0.0, 0.0, 1.0], bias: vec![], c: vec![nan; 4] };
        assert_eq!(
            run(&device.gpu, &op, &data).unwrap(),
            [1.0, 2.0, 3.0, 4.0],
            "{}: {variant}",
            device.label
        );
        let data = Data { a: vec![nan; 4], b: vec![f32::INFINITY; 4], bias: vec![], c: vec![5.0; 4] };
        let got = run(&device.gpu, &op.clone().alpha(0.0).beta(2.0), &data).unwrap();
        assert_eq!(got, [10.0; 4], "{}: {variant}", device.label);
    }
}

#[test]
fn nan_and_infinities_go_through() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        let mut data =
            Data::<f32>::random(3, Shape { m: 20, n: 20, k: 20, trans_a: false, trans_b: false }, 0, false);
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
fn a_long_inner_extent_is_cut_and_adds_up() {
    let Some(device) = devices().first() else { return };
    let k = (1 << 20) + 77;
    let data = Data { a: vec![1.0f32; 2 * k], b: vec![0.5; k], bias: vec![3.0], c: vec![1.0, 2.0] };
    let op = Gemm::new(2, 1, k).alpha(2.0).beta(-1.0);
    // Halves of integers below 2^24 add up without rounding.
    let product = k as f32;
    assert_eq!(run(&device.gpu, &op, &data).unwrap(), [product + 2.0, product + 1.0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Gemm| op.plan::<f32>(gpu).unwrap_err().kind();
    assert_eq!(kind(Gemm::new(4, 4, 4).lda(3)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Gemm::new(4, 4, 4).trans_b(true).ldb(3)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Gemm::new(4, 4, 4).ldc(0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Gemm::new(4, 4, 4).tile(0, 4, 4)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Gemm::new(4, 4, 4).tile(1 << 20, 4, 4)), ErrorKind::TooLarge);
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
fn one_line_multiplies() {
    for device in devices() {
        let gpu = &device.gpu;
        let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let c = gpu.gemm(&a, &a, 3, 3, 2).unwrap().read().unwrap();
        assert_eq!(c, [9.0, 12.0, 15.0, 19.0, 26.0, 33.0, 29.0, 40.0, 51.0], "{}", device.label);
    }
}
