//! Ops at several sizes: run, compared with the processor, timed. Names of sizes are those of `benches/results`.

use crate::Row;
use crate::random::Random;
use tilework::prelude::*;
use tilework::primitives::Operator;
use tilework::program::Program;
use tilework::reference::{self, AttentionInputs};
use tilework::sparse::Csr;
use tilework::{Error, Recorder, Result};

/// Runs that are timed; the median counts. Fewer if one takes longer than `LONG_SECONDS`.
const RUNS: usize = 7;
const LONG_RUNS: usize = 3;
const LONG_SECONDS: f64 = 0.2;
/// Browsers round timestamps to 0.1 ms, so a run repeats the op until it takes this long.
const RUN_SECONDS: f64 = 0.01;
/// Rows, heads or filters of a product that are compared.
const SAMPLES: usize = 4;

/// An op at a size.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Case {
    Reduce(usize),
    Scan(usize),
    Sort(usize),
    Histogram(usize),
    /// m = n = k.
    Gemm(usize),
    /// Rows; 16 entries in each.
    Spmv(usize),
    /// Images, channels and filters, height and width.
    Conv(usize, usize, usize),
    /// Batches, heads, queries and keys; heads of 64.
    Attention(usize, usize, usize),
}
use Case::{Attention as Attend, Conv, Gemm as Product, Histogram as Count, Reduce as Fold, Scan as Prefix};
use Case::{Sort as Order, Spmv as Sparse};

const BINS: usize = 1024;
const HEAD: usize = 64;

/// All cases.
pub(crate) fn cases() -> [Case; 22] {
    [
        Fold(1 << 16),
        Fold(1 << 20),
        Fold(1 << 24),
        Prefix(1 << 16),
        Prefix(1 << 20),
        Prefix(1 << 24),
        Order(1 << 16),
        Order(1 << 20),
        Order(1 << 24),
        Count(1 << 16),
        Count(1 << 20),
        Count(1 << 24),
        Product(256),
        Product(512),
        Product(1024),
        Product(2048),
        Sparse(1 << 16),
        Sparse(1 << 20),
        Conv(1, 64, 56),
        Conv(64, 64, 56),
        Attend(1, 4, 512),
        Attend(4, 16, 4096),
    ]
}

/// How results are compared.
struct Outcome {
    compared: usize,
    wrong: String,
}

/// Compares results with the exact ones, which may differ by the bounds.
fn judged<T: Copy + Into<f64>>(got: &[T], exact: &[f64], bounds: impl Fn(usize) -> f64) -> Outcome {
    let mut wrong = String::new();
    if got.len() != exact.len() {
        wrong = format!("{} elements instead of {}", got.len(), exact.len());
    }
    for (i, (got, exact)) in got.iter().zip(exact).enumerate() {
        let got: f64 = (*got).into();
        // NaN is not near anything.
        let near = (got - exact).abs() <= bounds(i);
        if !near {
            wrong = format!("element {i} is {got}, expected {exact}");
            break;
        }
    }
    Outcome { compared: exact.len(), wrong }
}

impl Outcome {
    /// Both outcomes.
    fn and(self, other: Self) -> Self {
        let wrong = if self.wrong.is_empty() { other.wrong } else { self.wrong };
        Self { compared: self.compared + other.compared, wrong }
    }

    const NOTHING: Self = Self { compared: 0, wrong: String::new() };
}

fn words(n: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    (0..n).map(|_| (random.next() >> 32) as u32).collect()
}

/// Numbers from -1 to 1.
fn numbers(n: usize, seed: u64) -> Vec<f32> {
    words(n, seed).into_iter().map(|word| (word >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// Indices of a few of `n` parts, the last among them.
fn samples(n: usize) -> impl Iterator<Item = usize> {
    let step = n.div_ceil(SAMPLES).max(1);
    (0..n).rev().step_by(step)
}

/// Rows of 16 entries in random columns.
fn scattered(n: usize) -> Csr {
    let mut col_idxs: Vec<u32> = words(16 * n, 1).into_iter().map(|word| word % n as u32).collect();
    col_idxs.chunks_mut(16).for_each(<[u32]>::sort_unstable);
    let row_ptrs = (0..=n as u32).map(|row| 16 * row).collect();
    Csr { rows: n, cols: n, row_ptrs, col_idxs, values: numbers(16 * n, 2) }
}

impl Case {
    pub(crate) fn op(self) -> &'static str {
        match self {
            Fold(_) => "reduce",
            Prefix(_) => "scan",
            Order(_) => "sort",
            Count(_) => "histogram",
            Product(_) => "gemm",
            Sparse(_) => "spmv",
            Conv(..) => "conv",
            Attend(..) => "attention",
        }
    }

    pub(crate) fn dtype(self) -> &'static str {
        if matches!(self, Prefix(_) | Order(_) | Count(_)) { "u32" } else { "f32" }
    }

    pub(crate) fn size(self) -> String {
        match self {
            Fold(n) => format!("sum {n}"),
            Prefix(n) => n.to_string(),
            Order(n) => format!("keys {n} random"),
            Count(n) => format!("{BINS} bins random {n}"),
            Product(n) => format!("{n}x{n}x{n}"),
            Sparse(n) => format!("{n} rows, 16 a row random"),
            Conv(images, channels, side) => format!("{images}x{channels}x{side}x{side} 3x3 {channels}"),
            Attend(batch, heads, n) => format!("B{batch} H{heads} T{n} D{HEAD}"),
        }
    }

    /// Runs, checks and times the case.
    pub(crate) async fn run(self, gpu: &Gpu) -> Result<Row> {
        match self {
            Fold(n) => {
                let (values, op) = (numbers(n, 1), Reduce::new(Sum, n));
                let (x, total) = (gpu.upload(&values)?, gpu.alloc::<f32>(1)?);
                let plan = op.plan::<f32>(gpu)?;
                let timed = timed(gpu, gpu.lower::<f32, _>(&op)?, |rec| plan.record(rec, &x, &total)).await?;
                let exact = reference::reduce(&Operator::Sum, 1, n, &values).unwrap_or_default();
                let bounds = reference::reduce_bound(&Operator::Sum, 1, n, &values);
                Ok(timed.row(judged(&total.read_async().await?, &exact, |i| bounds[i])))
            }
            Prefix(n) => {
                let (values, op) = (words(n, 1), Scan::new(Sum, n));
                let (x, y) = (gpu.upload(&values)?, gpu.alloc::<u32>(n)?);
                let plan = op.plan::<u32>(gpu)?;
                let timed = timed(gpu, gpu.lower::<u32, _>(&op)?, |rec| plan.record(rec, &x, &y)).await?;
                let exact = reference::scan(&Operator::Sum, 1, n, false, false, &values).unwrap_or_default();
                Ok(timed.row(judged(&y.read_async().await?, &exact, |_| 0.0)))
            }
            Order(n) => {
                let (mut keys, op) = (words(n, 1), RadixSort::new(n));
                let (x, y) = (gpu.upload(&keys)?, gpu.alloc::<u32>(n)?);
                let plan = op.plan::<u32>(gpu)?;
                let timed = timed(gpu, gpu.lower::<u32, _>(&op)?, |rec| plan.record(rec, &x, &y)).await?;
                keys.sort_unstable();
                let sorted = y.read_async().await?;
                let at = keys.iter().zip(&sorted).position(|(a, b)| a != b);
                let wrong =
                    at.map_or(String::new(), |i| format!("key {i} is {}, expected {}", sorted[i], keys[i]));
                Ok(timed.row(Outcome { compared: n, wrong }))
            }
            Count(n) => {
                let values: Vec<u32> = words(n, 1).into_iter().map(|word| word % BINS as u32).collect();
                let op = Histogram::new(n, BINS);
                let (x, counts) = (gpu.upload(&values)?, gpu.alloc::<u32>(BINS)?);
                let plan = op.plan::<u32>(gpu)?;
                let timed =
                    timed(gpu, gpu.lower::<u32, _>(&op)?, |rec| plan.record(rec, &x, &counts)).await?;
                let exact: Vec<f64> =
                    reference::histogram(&op, &values)?.into_iter().map(f64::from).collect();
                Ok(timed.row(judged(&counts.read_async().await?, &exact, |_| 0.0)))
            }
            Product(n) => {
                let (a, b, op) = (numbers(n * n, 1), numbers(n * n, 2), Gemm::new(n, n, n));
                let (x, y, c) = (gpu.upload(&a)?, gpu.upload(&b)?, gpu.alloc::<f32>(n * n)?);
                let plan = op.plan::<f32>(gpu)?;
                let timed = timed(gpu, gpu.lower::<f32, _>(&op)?, |rec| plan.record(rec, &x, &y, &c)).await?;
                let (got, row, mut outcome) = (c.read_async().await?, Gemm::new(1, n, n), Outcome::NOTHING);
                for i in samples(n) {
                    let (a, none) = (&a[i * n..(i + 1) * n], vec![0f32; n]);
                    let exact = reference::gemm(&row, a, &b, None, &none)?;
                    let bounds = reference::gemm_bound(&row, a, &b, None, &none)?;
                    outcome = outcome.and(judged(&got[i * n..(i + 1) * n], &exact, |j| bounds[j]));
                }
                Ok(timed.row(outcome))
            }
            Sparse(n) => {
                let (csr, values) = (scattered(n), numbers(n, 3));
                let (a, x, y) = (gpu.upload_matrix(&csr)?, gpu.upload(&values)?, gpu.alloc::<f32>(n)?);
                let op = Spmv::new(a.layout());
                let plan = op.plan::<f32>(gpu)?;
                let timed = timed(gpu, gpu.lower::<f32, _>(&op)?, |rec| plan.record(rec, &a, &x, &y)).await?;
                let old = vec![0f32; n];
                let exact = reference::spmv(1.0, &csr, &values, 0.0, &old)?;
                let bounds = reference::spmv_bound(1.0, &csr, &values, 0.0, &old)?;
                Ok(timed.row(judged(&y.read_async().await?, &exact, |i| bounds[i])))
            }
            Conv(images, channels, side) => {
                let op = Conv2d::new([images, channels, side, side], channels, [3, 3]).pad([1, 1]);
                let (image, filter) = (channels * side * side, 9 * channels);
                let (values, weights) = (numbers(images * image, 1), numbers(channels * filter, 2));
                let (x, w) = (gpu.upload(&values)?, gpu.upload(&weights)?);
                let y = gpu.alloc::<f32>(images * image)?;
                let plan = op.plan::<f32>(gpu)?;
                let timed = timed(gpu, gpu.lower::<f32, _>(&op)?, |rec| plan.record(rec, &x, &w, &y)).await?;
                let one = Conv2d::new([1, channels, side, side], 1, [3, 3]).pad([1, 1]);
                let (got, mut outcome) = (y.read_async().await?, Outcome::NOTHING);
                for (n, m) in samples(images).zip(samples(channels)) {
                    let (x, w) =
                        (&values[n * image..(n + 1) * image], &weights[m * filter..(m + 1) * filter]);
                    let exact: Vec<f64> =
                        reference::conv(&one, x, w, None)?.into_iter().map(f64::from).collect();
                    let bounds = reference::conv_bound(&one, x, w, None)?;
                    let first = (n * channels + m) * side * side;
                    outcome = outcome.and(judged(&got[first..first + side * side], &exact, |i| bounds[i]));
                }
                Ok(timed.row(outcome))
            }
            Attend(batch, heads, n) => {
                let op = Attention::new([batch, heads, n, HEAD], [heads, n]);
                let head = n * HEAD;
                let [q, k, v] = [1, 2, 3].map(|seed| numbers(batch * heads * head, seed));
                let (x, y, z) = (gpu.upload(&q)?, gpu.upload(&k)?, gpu.upload(&v)?);
                let output = gpu.alloc::<f32>(batch * heads * head)?;
                let plan = op.plan::<f32>(gpu)?;
                let record = |rec: &mut Recorder| plan.record(rec, &x, &y, &z, &output);
                let timed = timed(gpu, gpu.lower::<f32, _>(&op)?, record).await?;
                let one = Attention::new([1, 1, 1, HEAD], [1, n]);
                let (got, mut outcome) = (output.read_async().await?, Outcome::NOTHING);
                for (h, i) in samples(batch * heads).zip(samples(n)) {
                    let at = h * head + i * HEAD;
                    let (q, k, v) =
                        (&q[at..at + HEAD], &k[h * head..(h + 1) * head], &v[h * head..(h + 1) * head]);
                    let none = AttentionInputs::default();
                    let exact = reference::attention(&one, q, k, v, none).into_iter().map(f64::from);
                    let bounds = reference::attention_bound(&one, q, k, v, none);
                    let exact: Vec<f64> = exact.collect();
                    // The exact result was rounded to f32.
                    let near = |i: usize| bounds[i] + exact[i].abs() * f64::from(f32::EPSILON);
                    outcome = outcome.and(judged(&got[at..at + HEAD], &exact, near));
                }
                Ok(timed.row(outcome))
            }
        }
    }
}

/// Times of a program.
struct Timed {
    program: Program,
    seconds: f64,
    min_seconds: f64,
    clock: String,
}

/// Measures the op that `record` records.
async fn timed(
    gpu: &Gpu,
    program: Program,
    mut record: impl FnMut(&mut Recorder) -> Result<()>,
) -> Result<Timed> {
    let first = gpu.measure_async(1, &mut record).await?.median();
    let times = (RUN_SECONDS / first.max(1e-6)).clamp(1.0, 200.0) as usize;
    let measured = gpu
        .measure_async(if first > LONG_SECONDS { LONG_RUNS } else { RUNS }, |rec| {
            (0..times).try_for_each(|_| record(rec))?;
            Ok::<(), Error>(())
        })
        .await?;
    let [seconds, min_seconds] = [measured.median(), measured.min()].map(|s| s / times as f64);
    Ok(Timed { program, seconds, min_seconds, clock: measured.clock.to_string() })
}

impl Timed {
    fn row(self, Outcome { compared, wrong }: Outcome) -> Row {
        let (cost, seconds) = (self.program.cost, self.seconds);
        Row {
            variant: self.program.decision.variant.to_owned(),
            seconds,
            min_seconds: self.min_seconds,
            gbps: cost.bytes / seconds / 1e9,
            gflops: cost.flop / seconds / 1e9,
            clock: self.clock,
            compared,
            wrong,
        }
    }
}
