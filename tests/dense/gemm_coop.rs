//! `Gemm` on cooperative matrices against the reference: on devices that have them, and elsewhere with their functions
//! emulated, which tests everything except the hardware's arithmetic.

use crate::support::coverage::turn;
use crate::support::matrices::{run_emulated, with_matrices};
use crate::support::{Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::dense::ProductTile;
use tilework::dense::ThreadTile;
use tilework::dense::{Activation, Precision};
use tilework::prelude::*;
use tilework::program::{Choice, CooperativeShape, DeviceProfile, Op, Program};
use tilework::reference::{gemm, gemm_batched, gemm_batched_bound, gemm_bound};
use tilework::shader::Target;
use tilework::{Element, ErrorKind, Result};

/// Which bias an op has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bias {
    None,
    Columns,
    Rows,
}

/// An op with its operands: A and B of `T`, bias and C of `R`.
#[derive(Clone)]
struct Case<T, R> {
    op: Gemm,
    kind: Bias,
    a: Vec<T>,
    b: Vec<T>,
    bias: Vec<R>,
    c: Vec<R>,
}

impl<T, R> Case<T, R> {
    fn with(self, with: impl FnOnce(Gemm) -> Gemm) -> Self {
        Self { op: with(self.op), ..self }
    }
}

/// Types of operands and result that can be planned.
trait Pair<R: Element>: Element {
    fn lower(case: &Case<Self, R>, profile: &DeviceProfile) -> Result<Program>;

    /// C after the op, through the library.
    fn run(case: &Case<Self, R>, gpu: &Gpu) -> Result<Vec<R>>;
}

macro_rules! pair {
    ($t:ident, $r:ident, $with:expr) => {
        impl Pair<$r> for $t {
            fn lower(case: &Case<Self, $r>, profile: &DeviceProfile) -> Result<Program> {
                let op = case.op.clone();
                match case.kind {
                    Bias::None => Op::<$t>::lower(&$with(op), profile),
                    Bias::Columns => Op::<$t>::lower(&$with(op.with_bias()), profile),
                    Bias::Rows => Op::<$t>::lower(&$with(op.with_row_bias()), profile),
                }
            }

            fn run(case: &Case<Self, $r>, gpu: &Gpu) -> Result<Vec<$r>> {
                let (a, b) = (gpu.upload(&case.a)?, gpu.upload(&case.b)?);
                let (bias, c) = (gpu.upload(&case.bias)?, gpu.upload(&case.c)?);
                let (op, mut rec) = (case.op.clone(), gpu.recorder());
                match case.kind {
                    Bias::None => $with(op).plan::<$t>(gpu)?.record(&mut rec, &a, &b, &c)?,
                    Bias::Columns => {
                        $with(op.with_bias()).plan::<$t>(gpu)?.with_bias(&bias).record(&mut rec, &a, &b, &c)?;
                    }
                    Bias::Rows => {
                        $with(op.with_row_bias()).plan::<$t>(gpu)?.with_bias(&bias).record(&mut rec, &a, &b, &c)?;
                    }
                }
                rec.submit()?;
                c.read()
            }
        }
    };
}
pair!(f32, f32, std::convert::identity);
pair!(f16, f16, std::convert::identity);
pair!(f16, f32, Gemm::mixed_precision);

/// Extents, which operands are stored transposed, and the gap between rows.
#[derive(Clone, Copy, Debug)]
struct Shape {
    extents: [usize; 3],
    trans: [bool; 2],
    gap: usize,
}

impl Shape {
    fn new(extents: [usize; 3]) -> Self {
        Self { extents, trans: [false; 2], gap: 0 }
    }

    /// Each of the four ways to store the operands.
    fn all(extents: [usize; 3], gap: usize) -> impl Iterator<Item = Self> {
        let ways = [[false, false], [false, true], [true, false], [true, true]];
        ways.into_iter().map(move |trans| Self { extents, trans, gap })
    }

    /// With random elements that are exact in f16.
    fn case<T: Sample, R: Sample>(self, seed: u64, kind: Bias) -> Case<T, R> {
        let Self { extents: [m, n, k], trans: [trans_a, trans_b], gap } = self;
        let mut random = Random::new(seed);
        let mut stored = |rows: usize, cols: usize| -> Vec<f16> {
            random.elements(if rows * cols == 0 { 0 } else { (rows - 1) * (cols + gap) + cols })
        };
        let (row_a, row_b) = (if trans_a { m } else { k }, if trans_b { k } else { n });
        let a = if trans_a { stored(k, m) } else { stored(m, k) };
        let b = if trans_b { stored(n, k) } else { stored(k, n) };
        let (c, bias) = (stored(m, n), stored(1, m.max(n)));
        let bias = &bias[..[0, n, m][kind as usize]];
        let op = Gemm::new(m, n, k).when(trans_a, |op| op.trans_a()).when(trans_b, |op| op.trans_b());
        let op = op.lda(row_a + gap).ldb(row_b + gap).ldc(n + gap).variant("coop");
        Case { op, kind, a: cast(&a), b: cast(&b), bias: cast(bias), c: cast(&c) }
    }
}

/// The same numbers in another type.
fn cast<T: Sample>(x: &[f16]) -> Vec<T> {
    x.iter().map(|x| T::from_f64(x.to_f64())).collect()
}

/// C after the program; its kernels run one by one, as custom kernels.
fn emulate<T: Element, R: Element>(gpu: &Gpu, side: u32, program: &Program, case: &Case<T, R>) -> Vec<R> {
    let (a, b) = (gpu.upload(&case.a).unwrap(), gpu.upload(&case.b).unwrap());
    let (bias, c) = (gpu.upload(&case.bias).unwrap(), gpu.upload(&case.c).unwrap());
    run_emulated(gpu, side, program, "gemm_coop", |i| match i {
        0 => Arg::from(&a),
        1 => Arg::from(&b),
        2 if case.kind != Bias::None => Arg::from(&bias),
        _ => Arg::from(&c),
    });
    c.read().unwrap()
}

/// C by every available method, with its name: emulated with these sides and this step of k, and through the library
/// on devices with cooperative matrices.
fn results<T: Pair<R>, R: Element>(case: &Case<T, R>, sides: &[u32], step: u32) -> Vec<(String, Vec<R>)> {
    let mut all = Vec::new();
    if let Some(gpu) = gpu().filter(|gpu| gpu.profile().features.f16) {
        for &side in sides {
            // Few blocks, so that a software driver compiles quickly.
            let mut small = case.clone();
            small.op = if side == 16 {
                case.op
                    .clone()
                    .tile(ProductTile { m: 32, n: 32, k: step })
                    .thread_tile(ThreadTile { rows: 16, columns: 32 })
            } else {
                case.op
                    .clone()
                    .tile(ProductTile { m: 16, n: 16, k: 8 })
                    .thread_tile(ThreadTile { rows: 8, columns: 16 })
            };
            let program = T::lower(&small, &with_matrices(gpu, side)).unwrap();
            let what = format!("{side} x {side} emulated: {:?} {:?}", small.op, case.kind);
            all.push((what, emulate(gpu, side, &program, case)));
        }
    }
    for device in devices().iter().filter(|d| d.gpu.profile().cooperative_side().is_some()) {
        let what = format!("{}: {:?} {:?}", device.label, case.op, case.kind);
        all.push((what, T::run(case, &device.gpu).unwrap()));
    }
    all
}

/// Compares C with the reference within 4 times `gemm_bound`, since the hardware truncates sums, plus `more` times the
/// sum of the absolute terms.
fn check<T: Pair<R> + Sample + Into<f64>, R: Sample + Into<f64>>(case: &Case<T, R>, sides: &[u32], more: f64) {
    let Case { op, a, b, bias, c, .. } = case;
    // Alternating steps, and short ones for split operands, which triple the text.
    let step = if more == SPLIT { 16 } else { [16, 48, 16][a.len() % 3] };
    let op = op.clone().precision(Precision::Strict);
    // The op tells the reference to which axis the bias belongs.
    let op = if case.kind == Bias::Rows { op.with_row_bias() } else { op };
    let op = &op;
    let bias = Some(bias.as_slice()).filter(|b| !b.is_empty());
    let want = gemm(op, a, b, bias, c).unwrap();
    let mut bound = gemm_bound(op, a, b, bias, c).unwrap();
    let positive = |x: &[T]| x.iter().map(|x| T::from_f64((*x).into().abs())).collect::<Vec<_>>();
    let sizes = op.clone().beta(0.0).activation(Activation::None);
    let zeros = vec![R::from_f64(0.0); c.len()];
    let sizes = gemm(&sizes, &positive(a), &positive(b), None, &zeros).unwrap();
    // 0 for gaps between rows; no activation is steeper.
    bound.iter_mut().zip(sizes).for_each(|(b, size)| *b = 4.0 * *b + 1.13 * more * size.abs());
    for (what, got) in results(case, sides, step) {
        assert_close(&what, &numbers(&got), &want, &bound);
    }
}

/// The relative error of rounding both f32 operands to f16, to either neighbour as WGSL allows.
const ROUNDED: f64 = 2.1 / 1024.0;
/// The term that a product of split operands omits, and the bits that the parts do not hold.
const SPLIT: f64 = 4.0 / (1 << 22) as f64;

/// Around the sizes of matrices and tiles, and steps of k.
const EXTENTS: [[usize; 3]; 12] = [
    [1, 1, 1],
    [16, 16, 32],
    [15, 17, 47],
    [17, 15, 48],
    [32, 64, 96],
    [33, 40, 49],
    [40, 48, 72],
    [48, 20, 33],
    [64, 32, 16],
    [24, 72, 64],
    [1, 127, 96],
    [129, 1, 1000],
];

/// Larger ones, for devices with cooperative matrices.
const LARGE: [[usize; 3]; 6] =
    [[127, 128, 129], [255, 257, 96], [256, 256, 1000], [257, 255, 48], [512, 512, 96], [1024, 1032, 520]];

#[test]
fn every_shape_and_transpose_matches_reference() {
    let real = devices().iter().any(|d| d.gpu.profile().cooperative_side().is_some());
    let extents = EXTENTS.iter().chain(LARGE.iter().filter(|_| real));
    for (i, extents) in extents.enumerate() {
        let sides: &[u32] = if i >= EXTENTS.len() { &[] } else { &[16, 8][..if i % 4 == 3 { 2 } else { 1 }] };
        // One or two of the ways for each shape, in the short run for every fourth shape; all of them in total.
        let ways = Shape::all(*extents, [0, 8, 3][i % 3]).enumerate();
        for (j, shape) in ways.filter(|(j, _)| real || (i + j) % 3 == 0 && turn(i + 1, 4)) {
            // Types, copies of factors and slices of k alternate.
            let seed = (10 * i + j) as u64;
            let with = |op: Gemm| op.packed((i / 4 + j) % 2 == 1).slices(1 + ((i + 2 * j) % 3) as u32);
            match (i + j) % 4 {
                0 => check(&shape.case::<f16, f32>(seed, Bias::None).with(with), sides, 0.0),
                1 => check(&shape.case::<f16, f16>(seed, Bias::None).with(with), sides, 0.0),
                2 => check(&shape.case::<f32, f32>(seed, Bias::None).with(with), sides, 0.0),
                _ => {
                    let case = shape.case::<f32, f32>(seed, Bias::None).with(with);
                    check(&case.with(|op| op.precision(Precision::Split)), sides, SPLIT);
                }
            }
        }
    }
}

#[test]
fn batches_match_reference() {
    let Some(gpu) = gpu().filter(|gpu| gpu.profile().features.f16) else { return };
    let mut small = with_matrices(gpu, 16);
    let row = Some("32x32x32 by 16x32".to_owned());
    small.choices.forced.insert("gemm-batched".into(), Choice { row, ..Choice::variant("coop", "short") });
    for (i, (extents, [stride_a, stride_b])) in
        [([33, 20, 40], [1320, 800]), ([17, 47, 51], [0, 2397]), ([32, 48, 64], [2048, 3074])].into_iter().enumerate()
    {
        let ([m, n, k], batch, mut random) = (extents, 3, Random::new(i as u64));
        let op = GemmBatched::new(batch, m, n, k).strides(stride_a, stride_b, m * n).variant("coop");
        let op = op.when(i == 1, |op| op.trans_b()).when(i == 2, |op| op.trans_a());
        let len = |stride: usize, of: usize| (batch - 1) * stride + of;
        let (a, b) = (random.elements(len(stride_a, m * k)), random.elements(len(stride_b, k * n)));
        let c = vec![0.0; batch * m * n];
        let want = gemm_batched::<f16, f32>(&op, &a, &b, None, &c).unwrap();
        let mut bound = gemm_batched_bound::<f16, f32>(&op, &a, &b, None, &c).unwrap();
        bound.iter_mut().for_each(|bound| *bound *= 4.0);
        let op = op.mixed_precision();
        let program = Op::<f16>::lower(&op, &small).unwrap();
        let case = Case { op: Gemm::new(m, n, k), kind: Bias::None, a, b, bias: Vec::new(), c };
        assert_close(&format!("emulated: {op:?}"), &numbers(&emulate(gpu, 16, &program, &case)), &want, &bound);
        for device in devices().iter().filter(|d| d.gpu.profile().cooperative_side().is_some()) {
            let gpu = &device.gpu;
            let (a, b, c) = (gpu.upload(&case.a).unwrap(), gpu.upload(&case.b).unwrap(), gpu.upload(&case.c).unwrap());
            let mut rec = gpu.recorder();
            op.plan::<f16>(gpu).unwrap().record(&mut rec, &a, &b, &c).unwrap();
            rec.submit().unwrap();
            assert_close(&format!("{}: {op:?}", device.label), &numbers(&c.read().unwrap()), &want, &bound);
        }
    }
}

#[test]
fn f16_runs_on_matrices_unless_exact_sums_are_asked_for() {
    let h100 = DeviceProfile::h100();
    let variant = |op: &Gemm| Op::<f16>::lower(op, &h100).unwrap().variant().to_owned();
    for side in [128, 300, 1000, 4096] {
        let gemm = Gemm::new(side, side, side);
        assert_eq!(variant(&gemm), "coop", "{side}");
        assert_ne!(variant(&gemm.clone().precision(Precision::Exact)), "coop");
        let batch = GemmBatched::new(8, side, side, side);
        assert_eq!(Op::<f16>::lower(&batch, &h100).unwrap().variant(), "coop", "{side}");
        // f32 is rounded only where the caller asks for it.
        assert_ne!(Op::<f32>::lower(&gemm, &h100).unwrap().variant(), "coop");
        assert_ne!(Op::<f32>::lower(&batch, &h100).unwrap().variant(), "coop");
    }
}

#[test]
fn bias_activation_and_factors_match_reference() {
    let mut way = 0;
    for (i, kind) in [Bias::None, Bias::Columns, Bias::Rows].into_iter().enumerate() {
        let some = |j: &usize| (i + j).is_multiple_of(2) && turn(i + j / 2, 2);
        for (j, activation) in Activation::ALL.into_iter().enumerate().filter(|(j, _)| some(j)) {
            let gap = [0, 1, 4][(i + j) % 3];
            let shape = Shape { extents: [33, 36, 40], trans: [j % 2 == 1, i == 1], gap };
            let (alpha, beta) = [(1.0, 0.0), (-2.5, 1.0), (0.5, -1.0)][(i + j) % 3];
            let with = |op: Gemm| op.alpha(alpha).beta(beta).activation(activation);
            way += 1;
            match way % 4 {
                0 => {
                    let mut case = shape.case::<f16, f32>(way, kind);
                    case.op = with(case.op);
                    check(&case, &[16], 0.0);
                }
                1 => {
                    let mut case = shape.case::<f16, f16>(way, kind);
                    case.op = with(case.op);
                    check(&case, &[16], 0.0);
                }
                2 => {
                    let mut case = shape.case::<f32, f32>(way, kind);
                    case.op = with(case.op);
                    check(&case, &[16], 0.0);
                }
                _ => {
                    let mut case = shape.case::<f32, f32>(way, kind);
                    case.op = with(case.op).precision(Precision::Split);
                    check(&case, &[16], SPLIT);
                }
            }
        }
    }
}

#[test]
fn a_long_k_is_split_and_summed() {
    for device in devices() {
        // One slice on a card is several on a CPU.
        let long = if device.gpu.profile().is_cpu() { 1 << 13 } else { 1 << 20 };
        if !device.main {
            continue;
        }
        for precision in [Precision::Tensor, Precision::Split] {
            let mut case = Shape::new([2, 3, long + 77]).case::<f32, f32>(1, Bias::Columns);
            case.op = case.op.precision(precision);
            check(&case, &[16], if precision == Precision::Split { SPLIT } else { 0.0 });
        }
    }
}

#[test]
fn f32_operands_are_rounded_or_split() {
    let mut random = Random::new(7);
    let mut case = Shape::new([48, 40, 100]).case::<f32, f32>(2, Bias::None);
    case.a = random.elements(48 * 100);
    case.b = random.elements(100 * 40);
    check(&case, &[16], ROUNDED);
    case.op = case.op.precision(Precision::Split);
    check(&case, &[16], SPLIT);
    // Rows and columns of magnitudes outside f16, whose products alone exceed f32.
    case.a.chunks_mut(100).enumerate().for_each(|(i, row)| {
        row.iter_mut().for_each(|x| *x *= 10f32.powi(i as i32 % 31 - 15));
    });
    case.b.chunks_mut(40).for_each(|row| {
        row.iter_mut().enumerate().for_each(|(j, x)| *x *= 10f32.powi(15 - j as i32 % 31));
    });
    check(&case, &[16], SPLIT);
}

#[test]
fn separate_sums_per_step_match_reference() {
    let mut case = Shape::new([33, 47, 129]).case::<f16, f32>(3, Bias::None);
    case.op = case.op.fresh_sums(true);
    check(&case, &[16], 0.0);
}

#[test]
fn nan_and_infinities_stay_in_their_rows_and_columns() {
    // Partial steps of k and partial matrices.
    let [m, n, k] = [33, 41, 50];
    for trans in [[false, false], [true, true]] {
        let mut case = Shape { extents: [m, n, k], trans, gap: 0 }.case::<f16, f32>(4, Bias::None);
        let at_a = |i: usize, l: usize| if trans[0] { l * m + i } else { i * k + l };
        let at_b = |l: usize, j: usize| if trans[1] { j * k + l } else { l * n + j };
        (case.a[at_a(m - 1, k - 1)], case.b[at_b(k - 1, n - 1)]) = (f16::NAN, f16::INFINITY);
        case.b[at_b(0, 0)] = f16::NEG_INFINITY;
        let sides = if trans[0] { &[16][..] } else { &[16, 8] };
        for (what, got) in results(&case, sides, 32) {
            for (i, x) in got.iter().enumerate() {
                let fits = match (i / n, i % n) {
                    (row, _) if row == m - 1 => x.is_nan(),
                    (row, 0) => *x == f32::INFINITY * -case.a[at_a(row, 0)].to_f32().signum(),
                    (row, col) if col == n - 1 => *x == f32::INFINITY * case.a[at_a(row, k - 1)].to_f32().signum(),
                    _ => x.is_finite(),
                };
                assert!(fits, "{what}: element {i} is {x}");
            }
        }
        let mut case = Shape { extents: [m, n, k], trans, gap: 0 }.case::<f32, f32>(4, Bias::None);
        case.op = case.op.precision(Precision::Split);
        (case.a[at_a(m - 1, k - 1)], case.b[at_b(k - 1, n - 1)]) = (f32::NAN, f32::INFINITY);
        for (what, got) in results(&case, &[16], 16) {
            for (i, x) in got.iter().enumerate() {
                let inside = i / n < m - 1 && i % n < n - 1;
                assert_eq!(x.is_finite(), inside, "{what}: element {i} is {x}");
            }
        }
    }
}

/// The larger of the largest and the mean error, relative to that of `Strict` on the same device.
fn error_ratio(gpu: &Gpu, case: &Case<f32, f32>) -> [f64; 2] {
    let op = case.op.clone().variant("auto");
    let strict = Case { op: op.clone().precision(Precision::Strict), ..case.clone() };
    let split = Case { op: op.clone().precision(Precision::Split), ..case.clone() };
    let want = gemm(&op, &case.a, &case.b, None, &case.c).unwrap();
    let positive = |x: &[f32]| x.iter().map(|x| x.abs()).collect::<Vec<_>>();
    let sizes = gemm(&op, &positive(&case.a), &positive(&case.b), None, &case.c).unwrap();
    let errors = |case: &Case<f32, f32>| {
        let got = f32::run(case, gpu).unwrap();
        let each = got.iter().zip(&want).zip(&sizes);
        let each = each.map(|((g, w), s)| if *s > 0.0 { (f64::from(*g) - w).abs() / s } else { 0.0 });
        each.fold([0f64; 2], |[most, sum], e| [most.max(e), sum + e])
    };
    let (strict, split) = (errors(&strict), errors(&split));
    [split[0] / strict[0], split[1] / strict[1]]
}

#[test]
fn split_error_is_at_most_twice_the_strict_error() {
    for device in devices().iter().filter(|d| d.gpu.profile().cooperative_side().is_some()) {
        for k in [64, 500, 4096] {
            let [m, n] = [96, 80];
            for kind in ["uniform", "normal", "badly scaled"] {
                let mut random = Random::new(k as u64);
                let mut case = Shape::new([m, n, k]).case::<f32, f32>(1, Bias::None);
                let mut element = || {
                    let x = random.unit();
                    if kind != "normal" {
                        return x as f32;
                    }
                    let (x, y) = ((x.abs()).max(1e-12), random.unit());
                    ((-2.0 * x.ln()).sqrt() * (std::f64::consts::PI * y).cos()) as f32
                };
                case.a.iter_mut().chain(&mut case.b).for_each(|x| *x = element());
                if kind == "badly scaled" {
                    let scale = |i: usize, of: usize| 10f32.powf(30.0 * i as f32 / of as f32 - 15.0);
                    case.a.iter_mut().enumerate().for_each(|(i, x)| *x *= scale(i / k, m));
                    case.b.iter_mut().enumerate().for_each(|(i, x)| *x *= scale(i % n, n));
                }
                let ratio = error_ratio(&device.gpu, &case);
                println!("{}: {kind}, k = {k}: {ratio:?} times the error of Strict", device.label);
                assert!(ratio.iter().all(|r| *r <= 2.0), "{}: {kind}, k = {k}: {ratio:?}", device.label);
            }
        }
    }
}

#[test]
fn rejects_precisions_the_device_or_variant_lacks() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Gemm| op.plan::<f32>(gpu).unwrap_err().kind();
    let op = Gemm::new(32, 32, 32);
    for precision in [Precision::Tensor, Precision::Split] {
        let op = op.clone().precision(precision);
        assert_eq!(kind(op.clone().variant("double")), ErrorKind::InvalidArgument);
        if gpu.profile().cooperative_side().is_none() {
            assert_eq!(kind(op), ErrorKind::Unsupported);
        }
    }
    if gpu.profile().features.f16 {
        let halves = op.precision(Precision::Split).plan::<f16>(gpu).unwrap_err();
        assert_eq!(halves.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn kernels_translate_with_runtime_checks() {
    use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
    let policy = BoundsCheckPolicy::Restrict;
    let checks = BoundsCheckPolicies { index: policy, buffer: policy, ..Default::default() };
    let options = naga::back::spv::Options {
        lang_version: (1, 3),
        bounds_check_policies: checks,
        force_loop_bounding: true,
        ..Default::default()
    };
    let info = tilework::operations().find(|op| op.name == "gemm").unwrap();
    let h100 = DeviceProfile::h100();
    let (m, n, k, factors, result) = (8, 8, 8, "f16".into(), "f32".into());
    let eights = DeviceProfile { cooperative: vec![CooperativeShape { m, n, k, factors, result }], ..h100.clone() };
    for profile in [h100, eights] {
        let programs = (info.samples)(&profile, "coop").unwrap();
        for kernel in programs.iter().flat_map(|program| &program.kernels) {
            let module = kernel.expand(Target::Naga).unwrap().validate().unwrap();
            let (module, info) = module.naga();
            naga::back::spv::write_vec(module, info, &options, None).unwrap();
        }
    }
}
