//! Matrix products on CUDA against the reference.

use crate::support::cuda::cuda;
use crate::support::{Random, assert_close, numbers};
use half::{bf16, f16};
use tilework::cuda::{CudaExecutable, CudaGpu, RawCudaSlice};
use tilework::dense::{Activation, GemmBatched, Precision};
use tilework::prelude::*;
use tilework::reference::{Number, gemm, gemm_batched, gemm_batched_bound, gemm_bound};
use tilework::{Element, Plans, Result};

/// The relative error of rounding both operands to tf32.
const TF32: f64 = 2.1 / 2048.0;
/// The bits that two tf32 parts do not hold, and the product of the two low parts.
const SPLIT: f64 = 4.0 / (1 << 22) as f64;

/// Plans an op for operands of `T` and runs it.
fn run<T: Element, D>(op: &D, cuda: &CudaGpu, operands: &[RawCudaSlice<'_>]) -> Result<()>
where
    CudaGpu: Plans<D, T, Executor = CudaExecutable>,
{
    op.plan::<T>(cuda)?.into_executable().run(&cuda.stream()?, operands)
}

/// Which bias an op has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bias {
    None,
    Columns,
    Rows,
}

/// Types of operands and result that can be planned.
trait Pair<R: Element>: Element + Number + Into<f64> {
    fn run(op: &Gemm, kind: Bias, cuda: &CudaGpu, operands: &[RawCudaSlice<'_>]) -> Result<()>;
}

macro_rules! pair {
    ($t:ident, $r:ident, $with:expr) => {
        impl Pair<$r> for $t {
            fn run(op: &Gemm, kind: Bias, cuda: &CudaGpu, operands: &[RawCudaSlice<'_>]) -> Result<()> {
                match kind {
                    Bias::None => run::<$t, _>(&$with(op.clone()), cuda, operands),
                    Bias::Columns => run::<$t, _>(&$with(op.clone().with_bias()), cuda, operands),
                    Bias::Rows => run::<$t, _>(&$with(op.clone().with_row_bias()), cuda, operands),
                }
            }
        }
    };
}
pair!(f32, f32, std::convert::identity);
pair!(f16, f16, std::convert::identity);
pair!(bf16, bf16, std::convert::identity);
pair!(f16, f32, Gemm::mixed_precision);
pair!(bf16, f32, Gemm::mixed_precision);

fn elements<T: Number>(random: &mut Random, n: usize) -> Vec<T> {
    (0..n).map(|_| T::from_f64(random.unit())).collect()
}

/// Extents, which operands are stored transposed, and the gap between rows.
#[derive(Clone, Copy, Debug)]
struct Shape {
    extents: [usize; 3],
    trans: [bool; 2],
    gap: usize,
}

/// Runs the product by `with` and compares it with the reference within 4 times `gemm_bound`, since the hardware
/// truncates sums, plus `more` times the sum of the absolute terms.
fn check<T: Pair<R>, R: Element + Number + Into<f64>>(
    shape: Shape, kind: Bias, more: f64, with: impl Fn(Gemm) -> Gemm,
) {
    let Some(cuda) = cuda() else { return };
    let Shape { extents: [m, n, k], trans: [trans_a, trans_b], gap } = shape;
    let mut random = Random::new((m * 31 + n * 7 + k) as u64);
    let stored = |rows: usize, cols: usize| if rows * cols == 0 { 0 } else { (rows - 1) * (cols + gap) + cols };
    let ([rows_a, cols_a], [rows_b, cols_b]) =
        (if trans_a { [k, m] } else { [m, k] }, if trans_b { [n, k] } else { [k, n] });
    let a: Vec<T> = elements(&mut random, stored(rows_a, cols_a));
    let b: Vec<T> = elements(&mut random, stored(rows_b, cols_b));
    let bias: Vec<R> = elements(&mut random, [0, n, m][kind as usize]);
    let c: Vec<R> = elements(&mut random, stored(m, n));
    let op = with(Gemm::new(m, n, k).when(trans_a, |op| op.trans_a()).when(trans_b, |op| op.trans_b()));
    let op = op.lda(cols_a + gap).ldb(cols_b + gap).ldc(n + gap);

    let [to_a, to_b] = [&a, &b].map(|x| cuda.upload(x).unwrap());
    let [to_bias, to_c] = [&bias, &c].map(|x| cuda.upload(x).unwrap());
    let slices = [to_a.slice(..), to_b.slice(..)].map(|x| x.unwrap().untyped());
    let ends = [to_bias.slice(..), to_c.slice(..)].map(|x| x.unwrap().untyped());
    let operands = [&slices[..], &ends[usize::from(kind == Bias::None)..]].concat();
    T::run(&op, kind, cuda, &operands).unwrap();
    let got = to_c.read().unwrap();

    // The op says to which axis the bias belongs.
    let of = if kind == Bias::Rows { op.clone().with_row_bias() } else { op.clone() };
    let bias = Some(bias.as_slice()).filter(|bias| !bias.is_empty());
    let want = gemm(&of, &a, &b, bias, &c).unwrap();
    let mut bound = gemm_bound(&of, &a, &b, bias, &c).unwrap();
    let positive = |x: &[T]| x.iter().map(|x| T::from_f64((*x).into().abs())).collect::<Vec<_>>();
    let sizes = of.beta(0.0).activation(Activation::None);
    let zeros = vec![R::default(); c.len()];
    let sizes = gemm(&sizes, &positive(&a), &positive(&b), None, &zeros).unwrap();
    // 0 for gaps between rows; no activation is steeper.
    bound.iter_mut().zip(sizes).for_each(|(b, size)| *b = 4.0 * *b + 1.13 * more * size.abs());
    assert_close(&format!("{op:?} {kind:?} {} to {}", T::DTYPE, R::DTYPE), &numbers(&got), &want, &bound);
}

/// Each of the types in turn.
fn check_type(i: usize, shape: Shape, kind: Bias, with: impl Fn(Gemm) -> Gemm) {
    match i % 7 {
        0 => check::<f16, f32>(shape, kind, 0.0, with),
        1 => check::<f16, f16>(shape, kind, 0.0, with),
        2 => check::<bf16, bf16>(shape, kind, 0.0, with),
        3 => check::<bf16, f32>(shape, kind, 0.0, with),
        4 => check::<f32, f32>(shape, kind, TF32, |op| with(op).precision(Precision::Tensor)),
        5 => check::<f32, f32>(shape, kind, SPLIT, |op| with(op).precision(Precision::Split)),
        _ => check::<f32, f32>(shape, kind, 0.0, |op| with(op).variant("auto")),
    }
}

/// Variants on tensor cores.
fn variants() -> impl Iterator<Item = &'static str> {
    let run = |arch| cuda().is_some_and(|cuda| cuda.profile().runs(arch));
    let tensor = |name: &str| !["fma", "narrow"].contains(&name);
    Gemm::cuda_variants().iter().filter(move |v| tensor(v.name) && run(v.arch)).map(|v| v.name)
}

/// Around the sizes of blocks and tiles, and steps of k.
const EXTENTS: [[usize; 3]; 6] = [[1, 1, 1], [16, 24, 64], [33, 40, 49], [129, 127, 96], [257, 130, 1000], [5, 300, 0]];

#[test]
fn every_layout_and_type_matches_reference() {
    for (v, variant) in variants().enumerate() {
        for (i, extents) in EXTENTS.into_iter().enumerate() {
            for j in [i, i + 2, i + 4] {
                let shape = Shape { extents, trans: [j % 2 == 1, (i + v) % 4 > 1], gap: [0, 8, 3, 2][j % 4] };
                check_type(i + j, shape, Bias::None, |op| op.variant(variant));
            }
        }
    }
}

#[test]
fn bias_activation_and_factors_match_reference() {
    for (v, variant) in variants().enumerate() {
        for (i, activation) in Activation::ALL.into_iter().enumerate() {
            let kind = [Bias::Rows, Bias::Columns][(i + v) % 2];
            let (alpha, beta) = [(1.0, 0.0), (-2.5, 1.0), (0.5, -1.0), (0.0, 2.0)][i % 4];
            let shape = Shape { extents: [70, 36, 40], trans: [false; 2], gap: [0, 1][i % 2] };
            let with = |op: Gemm| op.alpha(alpha).beta(beta).activation(activation).variant(variant);
            check_type(i + v, shape, kind, with);
        }
    }
}

#[test]
fn slices_of_k_match_reference() {
    for (v, variant) in variants().enumerate() {
        for (i, extents) in [[64, 64, 5000], [16, 300, 700], [129, 17, 1030], [1, 130, 4099]].into_iter().enumerate() {
            for slices in [2, 7, 40] {
                let kind = [Bias::None, Bias::Rows, Bias::Columns][(i + v) % 3];
                let shape = Shape { extents, trans: [i % 2 == 1, (i + v) % 4 > 1], gap: [0, 3, 8][(i + v) % 3] };
                let with = |op: Gemm| {
                    let op = op.alpha(0.5).beta(2.0).activation(Activation::Relu).variant(variant);
                    op.slices(slices)
                };
                check_type(i + v + slices as usize, shape, kind, with);
            }
        }
    }
}

/// Few rows or columns, and rows that are no multiple of 16 bytes, as `auto` multiplies them.
#[test]
fn narrow_and_unaligned_products_match_reference() {
    let extents = [
        [1, 1000, 2000],
        [3, 777, 4096],
        [16, 512, 1111],
        [32, 2049, 300],
        [1000, 1, 2000],
        [513, 8, 4097],
        [700, 30, 999],
        [1, 1, 30_000],
        [333, 501, 777],
    ];
    for (i, extents) in extents.into_iter().enumerate() {
        for trans in [[false, false], [false, true], [true, false]] {
            let shape = Shape { extents, trans, gap: [0, 1][i % 2] };
            check_type(i, shape, Bias::None, |op| op);
        }
    }
}

/// Few rows or columns by fused multiply-adds, with and without slices of k.
#[test]
fn few_rows_and_columns_match_reference() {
    let extents =
        [[1, 1, 1], [1, 33, 257], [3, 40, 1000], [8, 129, 31], [70, 1, 513], [35, 6, 2000], [2, 2, 0], [5, 300, 9001]];
    for (i, extents) in extents.into_iter().enumerate() {
        for (j, slices) in [1, 3, 9].into_iter().enumerate() {
            let shape = Shape { extents, trans: [(i + j) % 2 == 1, (i + j) % 4 > 1], gap: [0, 3][i % 2] };
            let kind = [Bias::None, Bias::Rows, Bias::Columns][j];
            let with = |op: Gemm| {
                op.alpha(-0.5).beta([0.0, 1.0][i % 2]).activation(Activation::Tanh).variant("narrow").slices(slices)
            };
            check_type((i + j) % 4, shape, kind, with);
        }
    }
}

#[test]
fn nan_stays_in_its_row_and_padding_is_not_read() {
    let Some(cuda) = cuda() else { return };
    let (m, n, k) = (40, 40, 37);
    for variant in variants() {
        let mut a = vec![f16::ONE; m * 40];
        // The gap between rows, which copies of sixteen bytes reach.
        a.chunks_mut(40).for_each(|row| row[k..].fill(f16::NAN));
        a.truncate((m - 1) * 40 + k);
        a[3 * 40 + 5] = f16::NAN;
        let b = vec![f16::ONE; k * n];
        let c = cuda.upload(&vec![f32::NAN; m * n]).unwrap();
        let plan = Gemm::new(m, n, k).lda(40).variant(variant).mixed_precision().plan::<f16>(cuda).unwrap();
        let (a, b) = (cuda.upload(&a).unwrap(), cuda.upload(&b).unwrap());
        plan.run(&cuda.stream().unwrap(), &a, &b, &c).unwrap();
        for (i, row) in c.read().unwrap().chunks(n).enumerate() {
            assert!(row.iter().all(|x| if i == 3 { x.is_nan() } else { *x == k as f32 }), "{variant}: row {i}");
        }
    }
}

#[test]
fn batches_match_reference() {
    let Some(cuda) = cuda() else { return };
    let mut random = Random::new(5);
    let cases = [
        (72, [40 * 72, 72 * 48, 40 * 48], false),
        (72, [8, 0, 2000], true),
        (72, [7, 3500, 1930], false),
        // In slices of k.
        (9000, [0, 9000 * 48, 1920], false),
    ];
    for (k, strides, trans_b) in cases {
        let op =
            GemmBatched::new(5, 40, 48, k).strides(strides[0], strides[1], strides[2]).when(trans_b, |op| op.trans_b());
        let op: GemmBatched = op.alpha(0.5).beta(1.0);
        let len = |i: usize, one: usize| 4 * strides[i] + one;
        let a: Vec<bf16> = elements(&mut random, len(0, 40 * k));
        let b: Vec<bf16> = elements(&mut random, len(1, k * 48));
        let c: Vec<f32> = elements(&mut random, len(2, 40 * 48));
        let [to_a, to_b] = [&a, &b].map(|x| cuda.upload(x).unwrap());
        let to_c = cuda.upload(&c).unwrap();
        let plan = op.clone().mixed_precision().plan::<bf16>(cuda).unwrap();
        plan.run(&cuda.stream().unwrap(), &to_a, &to_b, &to_c).unwrap();
        let want = gemm_batched(&op, &a, &b, None, &c).unwrap();
        let bound = gemm_batched_bound(&op, &a, &b, None, &c).unwrap();
        let bound: Vec<_> = bound.iter().map(|b| 4.0 * b).collect();
        assert_close("batch", &numbers(&to_c.read().unwrap()), &want, &bound);
    }
}

/// Blocks that load a factor together, in products too large for the reference: as by another variant.
#[test]
fn clusters_agree_with_tiles() {
    let Some(cuda) = cuda() else { return };
    if cuda.profile().compute != [9, 0] {
        return;
    }
    let mut random = Random::new(5);
    for (m, n, trans) in [(3000, 3000, false), (3000, 2504, true)] {
        let k = 200;
        let [a, b] = [m * k, k * n].map(|n| cuda.upload(&elements::<f16>(&mut random, n)).unwrap());
        let [found, want] = ["wgmma", "mma"].map(|variant| {
            let gemm = Gemm::new(m, n, k).variant(variant);
            let gemm = if trans { gemm.trans_a().trans_b() } else { gemm };
            let c = cuda.upload(&vec![f16::NAN; m * n]).unwrap();
            let plan = gemm.plan::<f16>(cuda).unwrap();
            let launch = plan.program().launches.last().unwrap();
            assert_eq!(launch.cluster != [1; 3], variant == "wgmma", "{}", plan.program().decision.why);
            plan.run(&cuda.stream().unwrap(), &a, &b, &c).unwrap();
            numbers(&c.read().unwrap())
        });
        let bound: Vec<_> = want.iter().map(|x| 1e-2 + 2e-3 * x.abs()).collect();
        assert_close("clusters", &found, &want, &bound);
    }
}
