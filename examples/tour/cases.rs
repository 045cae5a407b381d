//! What the tour runs: a line in [`CASES`] for each row of its table, and a function for each op.

use crate::material::Material;
use crate::measured::{Check, Effort, check_on_all_cores, check_product, sparse_matrix};
use half::f16;
use tilework::attention::{Attention, KvAppend};
use tilework::nn::{
    ActivationBackward, Adam, BatchNorm, BiasBackward, CrossEntropy, LayerNormBackward, LogSoftmaxBackward,
    RmsNormBackward, Rope, Sgd, SoftmaxBackward, SquaredError,
};
use tilework::nn::{GatherRows, MeanPool};
use tilework::prelude::*;
use tilework::primitives::{Operator, Reducer};
use tilework::program::{Access, Op};
use tilework::quantize::{Cast, Code, Dequantize, Quantize};
use tilework::reference::{self, AttentionInputs, Number};
use tilework::sparse::{Csr, HostMatrix, Target};
use tilework::{DType, Element, Report, Result};

/// Rows of the table, for every adapter.
pub(crate) const CASES: &[Case] = &[
    Case { op: "map relu", dtype: DType::F32, run: |gpu, m| map(gpu, &MapFn::Relu, &m.floats) },
    Case { op: "map tanh", dtype: DType::F32, run: |gpu, m| map(gpu, &MapFn::Tanh, &m.floats) },
    Case { op: "zip mul", dtype: DType::F32, run: |gpu, m| zip(gpu, &ZipFn::Mul, &m.floats) },
    Case { op: "axpy", dtype: DType::F32, run: |gpu, m| axpy(gpu, 0.7, &m.floats) },
    Case { op: "reduce sum", dtype: DType::F32, run: |gpu, m| reduce(gpu, Sum, 1, &m.floats) },
    Case { op: "reduce sum", dtype: DType::U8, run: |gpu, m| reduce(gpu, Sum, 1, &m.bytes) },
    Case { op: "reduce min", dtype: DType::F32, run: |gpu, m| reduce(gpu, Min, 1, &m.floats) },
    Case { op: "reduce argmax", dtype: DType::U8, run: |gpu, m| reduce(gpu, ArgMax, 1, &m.bytes) },
    Case { op: "reduce rows prod", dtype: DType::F32, run: reduce_products_of_rows },
    Case { op: "reduce rows max", dtype: DType::F32, run: |gpu, m| reduce(gpu, Max, rows(m), &m.floats) },
    Case {
        op: "reduce rows argmin",
        dtype: DType::F32,
        run: |gpu, m| reduce(gpu, ArgMin, rows(m), &m.floats),
    },
    Case { op: "scan sum", dtype: DType::F32, run: |gpu, m| scan(gpu, Sum, false, 1, &m.floats) },
    Case { op: "scan rows max", dtype: DType::F32, run: |gpu, m| scan(gpu, Max, false, rows(m), &m.floats) },
    Case { op: "scan exclusive sum", dtype: DType::U32, run: scan_of_bytes },
    Case { op: "segmented scan sum", dtype: DType::F32, run: segmented_scan_of_lines },
    Case { op: "reduce by key sum", dtype: DType::F32, run: sums_of_words },
    Case { op: "segmented reduce max", dtype: DType::F32, run: maxima_of_lines },
    Case { op: "select", dtype: DType::F32, run: |gpu, m| select(gpu, &m.floats) },
    Case { op: "partition", dtype: DType::F32, run: |gpu, m| partition(gpu, &m.floats) },
    Case { op: "unique", dtype: DType::F32, run: |gpu, m| unique(gpu, &m.floats) },
    Case { op: "run-length", dtype: DType::F32, run: |gpu, m| run_length(gpu, &m.floats) },
    Case { op: "histogram", dtype: DType::U8, run: |gpu, m| histogram(gpu, &m.bytes, (0.0, 256.0)) },
    Case { op: "histogram", dtype: DType::F32, run: |gpu, m| histogram(gpu, &m.floats, (-1.0, 1.0)) },
    Case { op: "sort", dtype: DType::F32, run: |gpu, m| sort(gpu, false, &m.floats) },
    Case { op: "sort descending", dtype: DType::F32, run: |gpu, m| sort(gpu, true, &m.floats) },
    Case { op: "sort pairs", dtype: DType::F32, run: |gpu, m| sort_pairs(gpu, &m.floats) },
    Case { op: "top-k", dtype: DType::F32, run: |gpu, m| top_k(gpu, 100, &m.floats) },
    Case { op: "gemm", dtype: DType::F32, run: |gpu, m| gemm(gpu, "auto", m.side, &m.floats) },
    Case { op: "gemm", dtype: DType::F16, run: gemm_of_halves },
    Case { op: "gemm widened", dtype: DType::F16, run: gemm_widened },
    Case { op: "gemm bias gelu", dtype: DType::F32, run: gemm_with_bias_and_gelu },
    Case { op: "gemm", dtype: DType::F32, run: |gpu, m| gemm(gpu, "naive", m.side / 4, &m.floats) },
    Case { op: "gemm", dtype: DType::F32, run: |gpu, m| gemm(gpu, "tiled", m.side / 4, &m.floats) },
    Case { op: "gemm", dtype: DType::F32, run: |gpu, m| gemm(gpu, "coarsened", m.side / 4, &m.floats) },
    Case { op: "gemm", dtype: DType::F32, run: |gpu, m| gemm(gpu, "register-direct", m.side / 4, &m.floats) },
    Case { op: "gemm", dtype: DType::F32, run: |gpu, m| gemm(gpu, "register", m.side / 4, &m.floats) },
    Case { op: "gemm", dtype: DType::F32, run: |gpu, m| gemm(gpu, "double", m.side / 4, &m.floats) },
    Case { op: "gemm", dtype: DType::F32, run: |gpu, m| gemm(gpu, "split-k", m.side / 4, &m.floats) },
    Case { op: "gemm", dtype: DType::F32, run: |gpu, m| gemm(gpu, "split-k-atomic", m.side / 4, &m.floats) },
    Case { op: "gemm batched", dtype: DType::F32, run: |gpu, m| gemm_batched(gpu, "auto", &m.floats) },
    Case { op: "gemm batched", dtype: DType::F32, run: |gpu, m| gemm_batched(gpu, "naive", &m.floats) },
    Case { op: "gemm batched", dtype: DType::F32, run: |gpu, m| gemm_batched(gpu, "register", &m.floats) },
    Case { op: "gemv", dtype: DType::F32, run: |gpu, m| gemv(gpu, "naive", false, &m.floats) },
    Case { op: "gemv", dtype: DType::F32, run: |gpu, m| gemv(gpu, "tiled", false, &m.floats) },
    Case { op: "gemv transposed", dtype: DType::F32, run: |gpu, m| gemv(gpu, "naive", true, &m.floats) },
    Case { op: "gemv transposed", dtype: DType::F32, run: |gpu, m| gemv(gpu, "tiled", true, &m.floats) },
    Case { op: "spmv coo", dtype: DType::F32, run: |gpu, m| spmv(gpu, "coo", &m.floats) },
    Case { op: "spmv coo-atomic", dtype: DType::F32, run: |gpu, m| spmv(gpu, "coo-atomic", &m.floats) },
    Case { op: "spmv csr-scalar", dtype: DType::F32, run: |gpu, m| spmv(gpu, "csr-scalar", &m.floats) },
    Case { op: "spmv csr-vector", dtype: DType::F32, run: |gpu, m| spmv(gpu, "csr-vector", &m.floats) },
    Case { op: "spmv csr-merge", dtype: DType::F32, run: |gpu, m| spmv(gpu, "csr-merge", &m.floats) },
    Case { op: "spmv csr-segmented", dtype: DType::F32, run: |gpu, m| spmv(gpu, "csr-segmented", &m.floats) },
    Case { op: "spmv csc", dtype: DType::F32, run: |gpu, m| spmv(gpu, "csc", &m.floats) },
    Case { op: "spmv csc-atomic", dtype: DType::F32, run: |gpu, m| spmv(gpu, "csc-atomic", &m.floats) },
    Case { op: "spmv ell", dtype: DType::F32, run: |gpu, m| spmv(gpu, "ell", &m.floats) },
    Case { op: "spmv jds", dtype: DType::F32, run: |gpu, m| spmv(gpu, "jds", &m.floats) },
    Case { op: "spmv hybrid", dtype: DType::F32, run: |gpu, m| spmv(gpu, "hybrid", &m.floats) },
    Case { op: "spmv sell", dtype: DType::F32, run: |gpu, m| spmv(gpu, "sell", &m.floats) },
    Case { op: "spmm coo", dtype: DType::F32, run: |gpu, m| spmm(gpu, "coo", &m.floats) },
    Case { op: "spmm csr-scalar", dtype: DType::F32, run: |gpu, m| spmm(gpu, "csr-scalar", &m.floats) },
    Case { op: "spmm csr-vector", dtype: DType::F32, run: |gpu, m| spmm(gpu, "csr-vector", &m.floats) },
    Case { op: "spmm csr-merge", dtype: DType::F32, run: |gpu, m| spmm(gpu, "csr-merge", &m.floats) },
    Case { op: "spmm csc", dtype: DType::F32, run: |gpu, m| spmm(gpu, "csc", &m.floats) },
    Case { op: "spmm ell", dtype: DType::F32, run: |gpu, m| spmm(gpu, "ell", &m.floats) },
    Case { op: "spmm jds", dtype: DType::F32, run: |gpu, m| spmm(gpu, "jds", &m.floats) },
    Case { op: "spmm hybrid", dtype: DType::F32, run: |gpu, m| spmm(gpu, "hybrid", &m.floats) },
    Case { op: "spmm sell", dtype: DType::F32, run: |gpu, m| spmm(gpu, "sell", &m.floats) },
    Case { op: "spconvert coo", dtype: DType::F32, run: |gpu, m| spconvert(gpu, "coo", &m.floats) },
    Case { op: "spconvert csr", dtype: DType::F32, run: |gpu, m| spconvert(gpu, "csr", &m.floats) },
    Case { op: "spconvert csc", dtype: DType::F32, run: |gpu, m| spconvert(gpu, "csc", &m.floats) },
    Case { op: "spconvert ell", dtype: DType::F32, run: |gpu, m| spconvert(gpu, "ell", &m.floats) },
    Case { op: "spconvert hybrid", dtype: DType::F32, run: |gpu, m| spconvert(gpu, "hybrid", &m.floats) },
    Case { op: "spconvert jds", dtype: DType::F32, run: |gpu, m| spconvert(gpu, "jds", &m.floats) },
    Case { op: "spconvert sell", dtype: DType::F32, run: |gpu, m| spconvert(gpu, "sell", &m.floats) },
    Case { op: "transpose", dtype: DType::F32, run: |gpu, m| transpose(gpu, "naive", &m.floats) },
    Case { op: "transpose", dtype: DType::F32, run: |gpu, m| transpose(gpu, "tiled", &m.floats) },
    Case { op: "transpose", dtype: DType::U8, run: |gpu, m| transpose(gpu, "auto", &m.bytes) },
    Case { op: "conv1d", dtype: DType::F32, run: |gpu, m| conv1d(gpu, "auto", &m.floats) },
    Case { op: "conv2d", dtype: DType::F32, run: |gpu, m| conv2d(gpu, "naive", &m.floats) },
    Case { op: "conv2d", dtype: DType::F32, run: |gpu, m| conv2d(gpu, "constant", &m.floats) },
    Case { op: "conv2d", dtype: DType::F32, run: |gpu, m| conv2d(gpu, "strategy1", &m.floats) },
    Case { op: "conv2d", dtype: DType::F32, run: |gpu, m| conv2d(gpu, "strategy2", &m.floats) },
    Case { op: "conv2d", dtype: DType::F32, run: |gpu, m| conv2d(gpu, "strategy3", &m.floats) },
    Case { op: "conv2d", dtype: DType::F32, run: |gpu, m| conv2d(gpu, "register", &m.floats) },
    Case { op: "conv3d", dtype: DType::F32, run: |gpu, m| conv3d(gpu, "auto", &m.floats) },
    Case { op: "grey", dtype: DType::U8, run: |gpu, m| grey(gpu, &m.bytes) },
    Case { op: "blur", dtype: DType::U8, run: |gpu, m| blur(gpu, 1, &m.bytes) },
    Case { op: "blur", dtype: DType::U8, run: |gpu, m| blur(gpu, 8, &m.bytes) },
    Case { op: "gaussian", dtype: DType::U8, run: |gpu, m| gaussian(gpu, 1.0, &m.bytes) },
    Case { op: "gaussian", dtype: DType::F32, run: |gpu, m| gaussian(gpu, 3.0, &m.floats) },
    Case { op: "sobel", dtype: DType::U8, run: |gpu, m| sobel(gpu, &m.bytes) },
    Case { op: "sobel", dtype: DType::F32, run: |gpu, m| sobel(gpu, &m.floats) },
    Case { op: "equalize", dtype: DType::U8, run: |gpu, m| equalize(gpu, &m.bytes) },
    Case { op: "cast", dtype: DType::F32, run: cast },
    Case { op: "quantize int8", dtype: DType::F32, run: quantize::<i8> },
    Case { op: "quantize fp8", dtype: DType::F32, run: quantize::<u8> },
    Case { op: "dequantize", dtype: DType::I8, run: dequantize },
    Case { op: "gemm-int8", dtype: DType::I8, run: gemm_int8 },
    Case { op: "attention", dtype: DType::F32, run: |gpu, m| attention(gpu, "flash", m) },
    Case { op: "attention", dtype: DType::F32, run: |gpu, m| attention(gpu, "naive", m) },
    Case { op: "attention decode", dtype: DType::F16, run: attention_of_one_token },
    Case { op: "kv-append", dtype: DType::F16, run: kv_append },
    Case { op: "softmax", dtype: DType::F32, run: |gpu, m| softmax(gpu, "auto", 1000, &m.floats) },
    Case { op: "softmax", dtype: DType::F32, run: |gpu, m| softmax(gpu, "parts", 10_000, &m.floats) },
    Case { op: "log-softmax", dtype: DType::F32, run: log_softmax },
    Case { op: "rope", dtype: DType::F32, run: rope },
    Case { op: "layer-norm", dtype: DType::F32, run: layer_norm },
    Case { op: "rms-norm", dtype: DType::F32, run: rms_norm },
    Case { op: "conv", dtype: DType::F32, run: |gpu, m| conv(gpu, "direct", &m.floats) },
    Case { op: "conv", dtype: DType::F32, run: |gpu, m| conv(gpu, "im2col", &m.floats) },
    Case { op: "conv", dtype: DType::F32, run: |gpu, m| conv(gpu, "implicit", &m.floats) },
    Case { op: "conv", dtype: DType::F32, run: |gpu, m| conv(gpu, "winograd", &m.floats) },
    Case { op: "conv depthwise", dtype: DType::F32, run: conv_depthwise },
    Case { op: "conv-transpose", dtype: DType::F32, run: conv_transpose },
    Case { op: "conv-backward-data", dtype: DType::F32, run: conv_backward_data },
    Case { op: "conv-backward-weights", dtype: DType::F32, run: conv_backward_weights },
    Case { op: "pool max", dtype: DType::F32, run: |gpu, m| pool(gpu, PoolKind::Max, [2, 2], &m.floats) },
    Case { op: "pool avg", dtype: DType::F32, run: |gpu, m| pool(gpu, PoolKind::Average, [3, 3], &m.floats) },
    Case { op: "pool l2", dtype: DType::F32, run: |gpu, m| pool(gpu, PoolKind::L2, [2, 2], &m.floats) },
    Case { op: "pool-backward max", dtype: DType::F32, run: pool_backward },
    Case { op: "softmax-backward", dtype: DType::F32, run: softmax_backward },
    Case { op: "log-softmax-backward", dtype: DType::F32, run: log_softmax_backward },
    Case { op: "cross-entropy", dtype: DType::F32, run: cross_entropy },
    Case { op: "squared-error", dtype: DType::F32, run: squared_error },
    Case { op: "layer-norm-backward", dtype: DType::F32, run: layer_norm_backward },
    Case { op: "rms-norm-backward", dtype: DType::F32, run: rms_norm_backward },
    Case { op: "activation-backward", dtype: DType::F32, run: activation_backward },
    Case { op: "bias-backward", dtype: DType::F32, run: bias_backward },
    Case { op: "batch-norm", dtype: DType::F32, run: batch_norm },
    Case { op: "sgd momentum", dtype: DType::F32, run: sgd },
    Case { op: "adam", dtype: DType::F32, run: adam },
    Case { op: "gather-rows", dtype: DType::F32, run: gather_rows },
    Case { op: "mean-pool", dtype: DType::F32, run: mean_pool },
];

/// A row of the table: an op in one of its forms.
pub(crate) struct Case {
    pub(crate) op: &'static str,
    pub(crate) dtype: DType,
    pub(crate) run: fn(&Gpu, &Material) -> Result<Outcome>,
}

impl Case {
    /// What the device lacks for this case, if anything.
    pub(crate) fn missing(&self, gpu: &Gpu) -> Option<&'static str> {
        (self.dtype == DType::F16 && !gpu.profile().features.f16).then_some("no 16-bit floats in shaders")
    }
}

/// How an op did.
pub(crate) struct Outcome {
    pub(crate) size: String,
    pub(crate) report: Report,
    pub(crate) seconds: f64,
    pub(crate) check: Check,
}

impl Outcome {
    pub(crate) fn gbps(&self) -> f64 {
        self.report.cost.bytes / self.seconds * 1e-9
    }

    pub(crate) fn gflops(&self) -> f64 {
        self.report.cost.flop / self.seconds * 1e-9
    }

    pub(crate) fn percent(&self) -> Option<f64> {
        self.report.percent_of_roofline(self.seconds)
    }
}

/// Runs once, for the results.
fn run(gpu: &Gpu, record: impl FnOnce(&mut Recorder) -> Result<()>) -> Result<()> {
    let mut rec = gpu.recorder();
    record(&mut rec)?;
    rec.submit()
}

/// Measures what has been checked.
fn outcome(
    gpu: &Gpu,
    size: String,
    report: Report,
    check: Check,
    record: impl FnMut(&mut Recorder) -> Result<()>,
) -> Result<Outcome> {
    let runs = if gpu.profile().is_cpu() { 3 } else { 15 };
    let seconds = gpu.measure(runs, record)?.median();
    Ok(Outcome { size, report, seconds, check })
}

fn map(gpu: &Gpu, function: &MapFn, x: &[f32]) -> Result<Outcome> {
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<f32>(x.len())?);
    let plan = Map::new(function.clone(), x.len()).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let got = dy.read()?;
    let check = check_on_all_cores(x.len(), |part| {
        let (got, x) = (&got[part.clone()], &x[part]);
        Ok(Check::compare(got, &reference::map(function, x)?, &reference::map_bound(function, x)?))
    })?;
    outcome(gpu, x.len().to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

fn zip(gpu: &Gpu, function: &ZipFn, floats: &[f32]) -> Result<Outcome> {
    let (x, y) = halves(floats);
    let (dx, dy, dz) = (gpu.upload(x)?, gpu.upload(y)?, gpu.alloc::<f32>(x.len())?);
    let plan = Zip::new(function.clone(), x.len()).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy, &dz))?;
    let got = dz.read()?;
    let check = check_on_all_cores(x.len(), |part| {
        let (got, x, y) = (&got[part.clone()], &x[part.clone()], &y[part]);
        Ok(Check::compare(got, &reference::zip(function, x, y)?, &reference::zip_bound(function, x, y)?))
    })?;
    outcome(gpu, x.len().to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &dy, &dz))
}

fn axpy(gpu: &Gpu, alpha: f64, floats: &[f32]) -> Result<Outcome> {
    let (x, y) = halves(floats);
    let (dx, dy) = (gpu.upload(x)?, gpu.upload(y)?);
    let plan = Axpy::new(x.len(), alpha).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let got = dy.read()?;
    let check = check_on_all_cores(x.len(), |part| {
        let (got, x, y) = (&got[part.clone()], &x[part.clone()], &y[part]);
        let mut want = y.to_vec();
        reference::axpy(alpha, x, &mut want)?;
        Ok(Check::compare(got, &want, &reference::axpy_bound(alpha, x, y)?))
    })?;
    outcome(gpu, x.len().to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// Two halves of equal length.
fn halves(floats: &[f32]) -> (&[f32], &[f32]) {
    let n = floats.len() / 2;
    (&floats[..n], &floats[n..2 * n])
}

/// So many rows that they are of no round length.
fn rows(material: &Material) -> usize {
    material.floats.len() / 1000
}

/// Numbers so near to 1 that the product of a row is of the same order.
fn reduce_products_of_rows(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let factors: Vec<f32> = material.floats.iter().map(|x| 1.0 + x / 1024.0).collect();
    reduce(gpu, Prod, rows(material), &factors)
}

/// Reduces `rows` rows of equal length; a remainder is left out.
fn reduce<T: Number, O>(gpu: &Gpu, op: O, rows: usize, x: &[T]) -> Result<Outcome>
where
    O: Reducer<T, Output: Number>,
{
    let n = x.len() / rows;
    let x = &x[..rows * n];
    let operator: Operator = op.operator();
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<O::Output>(rows)?);
    let plan = Reduce::rows(op, rows, n).plan::<T>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let got = dy.read()?;
    let check = check_on_all_cores(rows, |part| {
        let (got, x) = (&got[part.clone()], &x[part.start * n..part.end * n]);
        // There is a reference for every operator but a user's own.
        let want = reference::reduce(&operator, part.len(), n, x).unwrap_or_default();
        Ok(Check::compare(got, &want, &reference::reduce_bound(&operator, part.len(), n, x)))
    })?;
    let size = if rows == 1 { n.to_string() } else { format!("{rows}x{n}") };
    outcome(gpu, size, plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// The front of what was written, as long as the count says.
fn front<T: Element>(output: &Buffer<T>, count: &Buffer<u32>) -> Result<Vec<T>> {
    output.slice(..count.read()?[0] as usize)?.read()
}

/// Moved elements are right to the bit, or wrong.
fn exact(same: bool) -> Check {
    if same { Check::PERFECT } else { Check::FAILED }
}

/// The positive numbers.
fn select(gpu: &Gpu, x: &[f32]) -> Result<Outcome> {
    let n = x.len();
    let positive = Predicate::custom("fn keep(x: T) -> bool { return x > 0.0; }");
    let (dx, dy, count) = (gpu.upload(x)?, gpu.alloc::<f32>(n)?, gpu.alloc::<u32>(1)?);
    let plan = Select::by(n, positive).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy, &count))?;
    let flags: Vec<u32> = x.iter().map(|x| u32::from(*x > 0.0)).collect();
    let check = exact(front(&dy, &count)? == reference::select(x, &flags));
    outcome(gpu, n.to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &dy, &count))
}

/// The positive numbers, by flags, then the others.
fn partition(gpu: &Gpu, x: &[f32]) -> Result<Outcome> {
    let n = x.len();
    let flags: Vec<u32> = x.iter().map(|x| u32::from(*x > 0.0)).collect();
    let (dx, df, dy) = (gpu.upload(x)?, gpu.upload(&flags)?, gpu.alloc::<f32>(n)?);
    let count = gpu.alloc::<u32>(1)?;
    let plan = Partition::new(n).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &df, &dy, &count))?;
    let (want, kept) = reference::partition(x, &flags);
    let check = exact(dy.read()? == want && count.read()? == [kept as u32]);
    outcome(gpu, n.to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &df, &dy, &count))
}

fn unique(gpu: &Gpu, x: &[f32]) -> Result<Outcome> {
    let n = x.len();
    let (dx, dy, count) = (gpu.upload(x)?, gpu.alloc::<f32>(n)?, gpu.alloc::<u32>(1)?);
    let plan = Unique::new(n).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy, &count))?;
    let check = exact(front(&dy, &count)? == reference::unique(x));
    outcome(gpu, n.to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &dy, &count))
}

fn run_length(gpu: &Gpu, x: &[f32]) -> Result<Outcome> {
    let n = x.len();
    let (dx, values, lengths) = (gpu.upload(x)?, gpu.alloc::<f32>(n)?, gpu.alloc::<u32>(n)?);
    let count = gpu.alloc::<u32>(1)?;
    let plan = RunLength::new(n).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &values, &lengths, &count))?;
    let got = (front(&values, &count)?, front(&lengths, &count)?);
    let check = exact(got == reference::run_length(x));
    outcome(gpu, n.to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &values, &lengths, &count))
}

/// 256 bins of equal width.
fn histogram<T: Number>(gpu: &Gpu, x: &[T], (lo, hi): (f64, f64)) -> Result<Outcome> {
    let op = |n| Histogram::new(n, 256).range(lo, hi);
    let (dx, dcounts) = (gpu.upload(x)?, gpu.alloc::<u32>(256)?);
    let plan = op(x.len()).plan::<T>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dcounts))?;
    let want = reference::histogram(&op(x.len()), x)?;
    let check = Check::compare(&dcounts.read()?, &want, &[0.0; 256]);
    outcome(gpu, x.len().to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &dcounts))
}

/// Where each item would begin if every byte were the length of one.
fn scan_of_bytes(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let lengths: Vec<u32> = material.bytes.iter().map(|&b| u32::from(b)).collect();
    scan(gpu, Sum, true, 1, &lengths)
}

/// Scans `rows` rows of equal length; a remainder is left out.
fn scan<T: Number, O>(gpu: &Gpu, op: O, exclusive: bool, rows: usize, x: &[T]) -> Result<Outcome>
where
    O: Reducer<T, Output = T>,
{
    let n = x.len() / rows;
    let x = &x[..rows * n];
    let operator: Operator = op.operator();
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<T>(x.len())?);
    let plan = Scan::rows(op, rows, n).exclusive(exclusive).plan::<T>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let got = dy.read()?;
    let check = check_on_all_cores(rows, |part| {
        let (count, elements) = (part.len(), part.start * n..part.end * n);
        let (got, x) = (&got[elements.clone()], &x[elements]);
        // There is a reference for every operator but a user's own.
        let want = reference::scan(&operator, count, n, exclusive, false, x).unwrap_or_default();
        let bounds = reference::scan_bound(&operator, count, n, exclusive, false, x);
        Ok(Check::compare(got, &want, &bounds))
    })?;
    let size = if rows == 1 { n.to_string() } else { format!("{rows}x{n}") };
    outcome(gpu, size, plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// Sums that begin anew at each line of the text that the material is.
fn segmented_scan_of_lines(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let n = material.floats.len().min(material.bytes.len());
    let x = &material.floats[..n];
    let heads: Vec<u32> = material.bytes[..n].iter().map(|&b| u32::from(b == b'\n')).collect();
    let (dx, dh, dy) = (gpu.upload(x)?, gpu.upload(&heads)?, gpu.alloc::<f32>(n)?);
    let plan = SegmentedScan::new(Sum, n).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dh, &dy))?;
    let want = reference::segmented_scan(&Operator::Sum, false, x, &heads).unwrap_or_default();
    let bounds = reference::segmented_scan_bound(&Operator::Sum, false, x, &heads);
    let check = Check::compare(&dy.read()?, &want, &bounds);
    outcome(gpu, n.to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &dh, &dy))
}

/// A sum for each word of the text that the material is, and for each gap between words.
fn sums_of_words(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let n = material.floats.len().min(material.bytes.len());
    let x = &material.floats[..n];
    let keys: Vec<u32> = material.bytes[..n].iter().map(|b| u32::from(b.is_ascii_alphanumeric())).collect();
    let (dk, dx) = (gpu.upload(&keys)?, gpu.upload(x)?);
    let (keys_out, sums, count) = (gpu.alloc::<u32>(n)?, gpu.alloc::<f32>(n)?, gpu.alloc::<u32>(1)?);
    let plan = ReduceByKey::new(Sum, n).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dk, &dx, &keys_out, &sums, &count))?;
    let (runs, want) = reference::reduce_by_key(&Operator::Sum, &keys, x).unwrap_or_default();
    let bounds = reference::reduce_by_key_bound(&Operator::Sum, &keys, x);
    let check =
        exact(front(&keys_out, &count)? == runs).and(Check::compare(&front(&sums, &count)?, &want, &bounds));
    outcome(gpu, n.to_string(), plan.report(), check, |rec| {
        plan.record(rec, &dk, &dx, &keys_out, &sums, &count)
    })
}

/// A maximum for each line of the text that the material is.
fn maxima_of_lines(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let n = material.floats.len().min(material.bytes.len());
    let x = &material.floats[..n];
    let heads: Vec<u32> = material.bytes[..n].iter().map(|&b| u32::from(b == b'\n')).collect();
    let (dx, dh) = (gpu.upload(x)?, gpu.upload(&heads)?);
    let (maxima, count) = (gpu.alloc::<f32>(n)?, gpu.alloc::<u32>(1)?);
    let plan = SegmentedReduce::new(Max, n).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dh, &maxima, &count))?;
    let want = reference::segmented_reduce(&Operator::Max, x, &heads).unwrap_or_default();
    let bounds = vec![0.0; want.len()];
    let check = Check::compare(&front(&maxima, &count)?, &want, &bounds);
    outcome(gpu, n.to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &dh, &maxima, &count))
}

/// What takes the reference of a product seconds.
const CHECKED: Effort = Effort { terms: 1 << 30, slack: 1.0 };

fn gemm<T>(gpu: &Gpu, variant: &str, n: usize, numbers: &[T]) -> Result<Outcome>
where
    T: Number + Into<f64>,
    Gemm: Op<T>,
{
    let (a, b) = (&numbers[..n * n], &numbers[n * n..2 * n * n]);
    let (da, db, dc) = (gpu.upload(a)?, gpu.upload(b)?, gpu.alloc::<T>(n * n)?);
    let plan = Gemm::new(n, n, n).variant(variant).plan::<T>(gpu)?;
    run(gpu, |rec| plan.record(rec, &da, &db, &dc))?;
    let check = check_product(&Gemm::new(1, n, n), a, b, None, &dc.read()?, &CHECKED)?;
    outcome(gpu, format!("{n}x{n}x{n}"), plan.report(), check, |rec| plan.record(rec, &da, &db, &dc))
}

fn gemm_of_halves(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let n = material.side;
    let numbers: Vec<f16> = material.floats[..2 * n * n].iter().map(|&x| f16::from_f32(x)).collect();
    gemm(gpu, "auto", n, &numbers)
}

fn gemm_widened(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let n = material.side;
    let numbers: Vec<f16> = material.floats[..2 * n * n].iter().map(|&x| f16::from_f32(x)).collect();
    let (a, b) = numbers.split_at(n * n);
    let (da, db, dc) = (gpu.upload(a)?, gpu.upload(b)?, gpu.alloc::<f32>(n * n)?);
    let plan = Gemm::new(n, n, n).mixed_precision().plan::<f16>(gpu)?;
    run(gpu, |rec| plan.record(rec, &da, &db, &dc))?;
    let check = check_product(&Gemm::new(1, n, n), a, b, None, &dc.read()?, &CHECKED)?;
    outcome(gpu, format!("{n}x{n}x{n}"), plan.report(), check, |rec| plan.record(rec, &da, &db, &dc))
}

fn gemm_with_bias_and_gelu(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let n = material.side;
    let (a, rest) = material.floats.split_at(n * n);
    let (b, rest) = rest.split_at(n * n);
    let bias = &rest[..n];
    // As the layers of a network: weights so small that sums stay of order 1.
    let op = |rows| Gemm::new(rows, n, n).alpha(1.0 / n as f32).activation(Activation::Gelu);
    let (da, db, dbias) = (gpu.upload(a)?, gpu.upload(b)?, gpu.upload(bias)?);
    let dc = gpu.alloc::<f32>(n * n)?;
    let plan = op(n).with_bias().plan::<f32>(gpu)?;
    run(gpu, |rec| plan.with_bias(&dbias).record(rec, &da, &db, &dc))?;
    let check = check_product(&op(1), a, b, Some(bias), &dc.read()?, &CHECKED)?;
    let size = format!("{n}x{n}x{n}");
    outcome(gpu, size, plan.report(), check, |rec| plan.with_bias(&dbias).record(rec, &da, &db, &dc))
}

/// Up to 10,000 pairs of 32 x 32.
fn gemm_batched(gpu: &Gpu, variant: &str, numbers: &[f32]) -> Result<Outcome> {
    const SIDE: usize = 32;
    const SIZE: usize = SIDE * SIDE;
    let batch = (numbers.len() / (2 * SIZE)).min(10_000);
    let (a, b) = (&numbers[..batch * SIZE], &numbers[batch * SIZE..][..batch * SIZE]);
    let (da, db, dc) = (gpu.upload(a)?, gpu.upload(b)?, gpu.alloc::<f32>(batch * SIZE)?);
    let op = |batch| GemmBatched::new(batch, SIDE, SIDE, SIDE).variant(variant);
    let plan = op(batch).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &da, &db, &dc))?;
    let got = dc.read()?;
    let check = check_on_all_cores(batch, |part| {
        let elements = part.start * SIZE..part.end * SIZE;
        let (a, b, got) = (&a[elements.clone()], &b[elements.clone()], &got[elements]);
        let (op, c) = (op(part.len()), vec![0.0; got.len()]);
        let want = reference::gemm_batched(&op, a, b, None, &c)?;
        Ok(Check::compare(got, &want, &reference::gemm_batched_bound(&op, a, b, None, &c)?))
    })?;
    let size = format!("{batch}x{SIDE}x{SIDE}x{SIDE}");
    outcome(gpu, size, plan.report(), check, |rec| plan.record(rec, &da, &db, &dc))
}

/// A square whose side is a multiple of 4, and behind it the vector.
fn gemv(gpu: &Gpu, variant: &str, trans: bool, numbers: &[f32]) -> Result<Outcome> {
    let n = numbers.len().isqrt().saturating_sub(1) & !3;
    let (a, x) = (&numbers[..n * n], &numbers[n * n..][..n]);
    let op = Gemv::new(n, n).trans(trans).variant(variant);
    let (da, dx, dy) = (gpu.upload(a)?, gpu.upload(x)?, gpu.alloc::<f32>(n)?);
    let plan = op.plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &da, &dx, &dy))?;
    let y = vec![0.0; n];
    let bounds = reference::gemv_bound(&op, a, x, &y)?;
    let check = Check::compare(&dy.read()?, &reference::gemv(&op, a, x, &y)?, &bounds);
    outcome(gpu, format!("{n}x{n}"), plan.report(), check, |rec| plan.record(rec, &da, &dx, &dy))
}

/// The same on a device, in the format of the variant, converted there.
fn sparse(gpu: &Gpu, variant: &str, n: usize, numbers: &[f32]) -> Result<(Csr, DeviceMatrix)> {
    let csr = sparse_matrix(n, numbers);
    let target = variant.split('-').next().and_then(Target::named).unwrap_or(Target::Csr);
    let a = gpu.convert_matrix(&gpu.upload_matrix(&csr)?, target)?;
    Ok((csr, a))
}

fn spmv(gpu: &Gpu, variant: &str, numbers: &[f32]) -> Result<Outcome> {
    let n = numbers.len() / 16;
    let (csr, a) = sparse(gpu, variant, n, numbers)?;
    let (x, y) = (&numbers[..n], vec![0.0; n]);
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<f32>(n)?);
    let plan = Spmv::new(a.stored()).variant(variant).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &a, &dx, &dy))?;
    let want = reference::spmv(1.0, &csr, x, 0.0, &y)?;
    let check = Check::compare(&dy.read()?, &want, &reference::spmv_bound(1.0, &csr, x, 0.0, &y)?);
    let size = format!("{n}x{n}, {} entries", csr.entries());
    outcome(gpu, size, plan.report(), check, |rec| plan.record(rec, &a, &dx, &dy))
}

/// With a dense matrix of eight columns.
fn spmm(gpu: &Gpu, variant: &str, numbers: &[f32]) -> Result<Outcome> {
    let (n, columns) = (numbers.len() / 32, 8);
    let (csr, a) = sparse(gpu, variant, n, numbers)?;
    let (b, c) = (&numbers[..n * columns], vec![0.0; n * columns]);
    let (db, dc) = (gpu.upload(b)?, gpu.alloc::<f32>(n * columns)?);
    let plan = Spmm::new(a.stored(), columns).variant(variant).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &a, &db, &dc))?;
    let want = reference::spmm(1.0, &csr, b, columns, 0.0, &c)?;
    let check = Check::compare(&dc.read()?, &want, &reference::spmm_bound(1.0, &csr, b, columns, 0.0, &c)?);
    let size = format!("{n}x{n}, {} entries, {columns} columns", csr.entries());
    outcome(gpu, size, plan.report(), check, |rec| plan.record(rec, &a, &db, &dc))
}

/// Compressed rows to another format; to themselves, coordinates, last ones first.
fn spconvert(gpu: &Gpu, name: &str, numbers: &[f32]) -> Result<Outcome> {
    let csr = sparse_matrix(numbers.len() / 16, numbers);
    let target = Target::named(name).unwrap_or(Target::Csr);
    let host = if target == Target::Csr {
        let mut coo = csr.to_coo()?;
        coo.row_idxs.reverse();
        coo.col_idxs.reverse();
        coo.values.reverse();
        HostMatrix::Coo(coo)
    } else {
        HostMatrix::Csr(csr)
    };
    let a = gpu.upload_matrix(&host)?;
    let b = gpu.convert_matrix(&a, target)?;
    let check = exact(b.read()? == reference::spconvert(&host, target)?);
    let plan = Spconvert::new(a.stored(), b.stored()).plan::<f32>(gpu)?;
    let stored = a.stored();
    let size = format!("{}x{}, {} entries", stored.rows, stored.cols, stored.entries);
    outcome(gpu, size, plan.report(), check, |rec| plan.record(rec, &a, &b))
}

/// A matrix that is about square, its sides multiples of 4.
fn transpose<T: Element>(gpu: &Gpu, variant: &str, x: &[T]) -> Result<Outcome> {
    let n = x.len().isqrt() & !3;
    let m = x.len().checked_div(n).unwrap_or(0) & !3;
    let x = &x[..m * n];
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<T>(m * n)?);
    let plan = Transpose::new(m, n).variant(variant).plan::<T>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let check = exact(dy.read()? == reference::transpose(1, m, n, x));
    outcome(gpu, format!("{m}x{n}"), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// Rows (or planes) of a result that its reference computes: all, or so many that it takes a second.
fn checked_rows(rows: usize, terms_of_a_row: usize) -> usize {
    rows.min(CHECKED_TERMS / terms_of_a_row.max(1)).max(1)
}

/// Multiply-adds that the reference of a stencil may take.
const CHECKED_TERMS: usize = 1 << 26;

/// Weights that differ all over.
fn weights(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * 0.7).sin() / n as f32).collect()
}

/// Checks the front of what a stencil has made: the results of a smaller one on the front of its input, less those
/// that saw its end.
fn check_front<T: Number>(got: &[T], want: &[f64], bounds: &[f64], front: usize) -> Check {
    Check::compare(&got[..front], &want[..front], &bounds[..front])
}

fn conv1d(gpu: &Gpu, variant: &str, x: &[f32]) -> Result<Outcome> {
    let (n, filter) = (x.len(), weights(5));
    let op = |n| Conv1d::new(n, &filter).variant(variant);
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<f32>(n)?);
    let plan = op(n).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let some = checked_rows(n, filter.len());
    let front = if some == n { n } else { some - 2 };
    let (want, bounds) =
        (reference::conv1d(&op(some), &x[..some]), reference::conv1d_bound(&op(some), &x[..some]));
    let check = check_front(&dy.read()?, &want, &bounds, front);
    outcome(gpu, format!("{n} under 5"), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// About a square, its sides multiples of 4.
fn conv2d(gpu: &Gpu, variant: &str, x: &[f32]) -> Result<Outcome> {
    let (side, filter) = ((x.len().isqrt() & !3).max(8), weights(25));
    let op = |h| Conv2d::new(h, side, [5, 5], &filter).variant(variant);
    let (dx, dy) = (gpu.upload(&x[..side * side])?, gpu.alloc::<f32>(side * side)?);
    let plan = op(side).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let some = checked_rows(side, 25 * side).max(5);
    let front = if some == side { side } else { some - 2 } * side;
    let part = &x[..some * side];
    let (want, bounds) = (reference::conv2d(&op(some), part), reference::conv2d_bound(&op(some), part));
    let check = check_front(&dy.read()?, &want, &bounds, front);
    outcome(gpu, format!("{side}x{side} under 5x5"), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// A cube, its edges multiples of 4.
fn conv3d(gpu: &Gpu, variant: &str, x: &[f32]) -> Result<Outcome> {
    let edge = ((x.len() as f64).cbrt() as usize & !3).max(4);
    let (plane, filter) = (edge * edge, weights(27));
    let op = |d| Conv3d::new([d, edge, edge], [3, 3, 3], &filter).variant(variant);
    let (dx, dy) = (gpu.upload(&x[..edge * plane])?, gpu.alloc::<f32>(edge * plane)?);
    let plan = op(edge).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let some = checked_rows(edge, 27 * plane).max(3);
    let front = if some == edge { edge } else { some - 1 } * plane;
    let part = &x[..some * plane];
    let (want, bounds) = (reference::conv3d(&op(some), part), reference::conv3d_bound(&op(some), part));
    let check = check_front(&dy.read()?, &want, &bounds, front);
    let size = format!("{edge}x{edge}x{edge} under 3x3x3");
    outcome(gpu, size, plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// The bytes as an image of pixels, about square.
fn grey(gpu: &Gpu, x: &[u8]) -> Result<Outcome> {
    let side = (x.len() / 3).isqrt();
    let (op, x) = (Grey::new([side, side, 3]), &x[..3 * side * side]);
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<u8>(side * side)?);
    let plan = op.plan::<u8>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let check = exact(dy.read()?.into_iter().map(f64::from).eq(reference::grey(&op, x)));
    outcome(gpu, format!("{side}x{side}"), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// Results and bounds of an image.
type Reference = (Vec<f64>, Vec<f64>);

/// An image of one channel, about square, rows of a multiple of 4. The upper part is checked: all of it that has
/// `reach` rows below it.
fn picture<T: Number, D: Op<T>>(
    gpu: &Gpu,
    x: &[T],
    (reach, taps): (usize, usize),
    what: &str,
    op: impl Fn([usize; 2]) -> D,
    reference: impl Fn(&D, &[T]) -> Result<Reference>,
) -> Result<Outcome> {
    let side = (x.len().isqrt() & !3).max(4);
    let (dx, dy) = (gpu.upload(&x[..side * side])?, gpu.alloc::<T>(side * side)?);
    let plan = op([side, side]).plan::<T>(gpu)?;
    let report = plan.report();
    let (plan, operands) = (plan.into_executable(), [&dx, &dy].map(|buffer| Slice::from(buffer).untyped()));
    run(gpu, |rec| plan.record(rec, &operands))?;
    let rows = checked_rows(side, taps * side).max(reach + 1).min(side);
    let front = if rows == side { side } else { rows - reach } * side;
    let (want, bounds) = reference(&op([rows, side]), &x[..rows * side])?;
    let check = check_front(&dy.read()?, &want, &bounds, front);
    outcome(gpu, format!("{side}x{side}{what}"), report, check, |rec| plan.record(rec, &operands))
}

fn blur(gpu: &Gpu, radius: usize, x: &[u8]) -> Result<Outcome> {
    let of = |op: &Blur, x: &[u8]| Ok((reference::blur(op, x), reference::blur_bound(op, x)));
    picture(
        gpu,
        x,
        (radius, 4 * radius + 2),
        &format!(" radius {radius}"),
        |image| Blur::new(image, radius),
        of,
    )
}

fn gaussian<T: Number + Into<f64>>(gpu: &Gpu, sigma: f64, x: &[T]) -> Result<Outcome> {
    let of = |op: &Gaussian, x: &[T]| {
        // Rounded to the nearest, of bytes.
        let rounding = if T::DTYPE == DType::U8 { 0.5 } else { 0.0 };
        let bounds = reference::gaussian_bound(op, x).into_iter().map(|b| b + rounding);
        Ok((reference::gaussian(op, x), bounds.collect()))
    };
    let radius = (4.0 * sigma + 0.5) as usize;
    let what = format!(" sigma {sigma}");
    picture(gpu, x, (radius, 4 * radius + 2), &what, |image| Gaussian::new(image, sigma), of)
}

fn sobel<T: Number + Into<f64>>(gpu: &Gpu, x: &[T]) -> Result<Outcome> {
    let of = |op: &Sobel, x: &[T]| {
        let (mut want, mut bounds) = (reference::sobel(op, x), reference::sobel_bound(op, x));
        if T::DTYPE == DType::U8 {
            want.iter_mut().for_each(|g| *g = g.round().min(255.0));
            bounds.fill(0.0);
        }
        Ok((want, bounds))
    };
    picture(gpu, x, (1, 9), "", Sobel::new, of)
}

/// Checked as a whole, since every pixel depends on all.
fn equalize(gpu: &Gpu, x: &[u8]) -> Result<Outcome> {
    let side = x.len().min(CHECKED_TERMS).isqrt();
    let (op, x) = (Equalize::new([side, side]), &x[..side * side]);
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<u8>(side * side)?);
    let plan = op.plan::<u8>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let check = exact(dy.read()?.into_iter().map(f64::from).eq(reference::equalize(&op, x)?));
    outcome(gpu, format!("{side}x{side}"), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// As many whole rows of n as there are; none of less than one.
fn whole_rows(n: usize, x: &[f32]) -> (usize, usize, &[f32]) {
    let n = n.min(x.len().max(1));
    let rows = x.len() / n;
    (rows, n, &x[..rows * n])
}

fn softmax(gpu: &Gpu, variant: &str, n: usize, x: &[f32]) -> Result<Outcome> {
    let (rows, n, x) = whole_rows(n, x);
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<f32>(x.len())?);
    let plan = Softmax::new(rows, n).variant(variant).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let check = Check::compare(&dy.read()?, &reference::softmax(n, x), &reference::softmax_bound(n, x));
    outcome(gpu, format!("{rows}x{n}"), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

fn cast(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let x = &material.floats;
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<f16>(x.len())?);
    let plan = Cast::new(x.len()).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let check = Check::exact(&dy.read()?, reference::cast::<f32, f16>(x).into_iter());
    outcome(gpu, x.len().to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// Rows as bytes, which must be as near as the nearest by the scale that the device found.
fn quantize<Q: Code + Number>(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (rows, n, x) = whole_rows(1000, &material.floats);
    let op = Quantize::<Q>::new(rows, n);
    let (dx, dy, ds) = (gpu.upload(x)?, gpu.alloc::<Q>(x.len())?, gpu.alloc::<f32>(rows)?);
    let plan = op.plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy, &ds))?;
    let (got, scale) = (dy.read()?, ds.read()?);
    let (want, exact) = reference::quantize(&op, x);
    let off = |codes: &[Q]| {
        let one =
            |(i, (x, code)): (usize, (&f32, &Q))| (reference::code_value(*code) * scale[i / n] - x).abs();
        x.iter().zip(codes).enumerate().map(one).collect::<Vec<_>>()
    };
    let bounds: Vec<f64> = x.iter().map(|x| 1e-6 * f64::from(x.abs())).collect();
    let of_scales: Vec<f64> = exact.iter().map(|s| 4e-7 * f64::from(*s)).collect();
    let check =
        Check::compare(&off(&got), &off(&want), &bounds).and(Check::compare(&scale, &exact, &of_scales));
    outcome(gpu, format!("{rows}x{n}"), plan.report(), check, |rec| plan.record(rec, &dx, &dy, &ds))
}

/// The bytes of the source as signed ones.
fn signed(bytes: &[u8]) -> &[i8] {
    bytemuck::cast_slice(bytes)
}

fn dequantize(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let n = 1000;
    let rows = material.bytes.len() / 4 / n;
    let x = signed(&material.bytes[..rows * n]);
    let scale: Vec<f32> = (0..rows).map(|row| 1.0 / (1 + row % 100) as f32).collect();
    let op = Dequantize::<i8>::new(rows, n);
    let (dx, ds, dy) = (gpu.upload(x)?, gpu.upload(&scale)?, gpu.alloc::<f32>(x.len())?);
    let plan = op.plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &ds, &dy))?;
    let want = reference::dequantize::<i8, f32>(&op, x, &scale);
    let check = Check::compare(&dy.read()?, &want, &reference::dequantize_bound::<i8, f32>(&op, x, &scale));
    outcome(gpu, format!("{rows}x{n}"), plan.report(), check, |rec| plan.record(rec, &dx, &ds, &dy))
}

fn gemm_int8(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let n = material.side;
    let (a, b) = signed(&material.bytes[..2 * n * n]).split_at(n * n);
    let (da, db, dc) = (gpu.upload(a)?, gpu.upload(b)?, gpu.alloc::<i32>(n * n)?);
    let plan = GemmInt8::new(n, n, n).trans_b(true).plan::<i32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &da, &db, &dc))?;
    // As many rows as the reference takes seconds for.
    let rows = (CHECKED.terms / (n * n)).clamp(1, n);
    let want = reference::gemm_int8(&GemmInt8::new(rows, n, n).trans_b(true), &a[..rows * n], b);
    let check = Check::exact(&dc.slice(..rows * n)?.read()?, want.into_iter());
    outcome(gpu, format!("{n}x{n}x{n}"), plan.report(), check, |rec| plan.record(rec, &da, &db, &dc))
}

fn log_softmax(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (rows, n, x) = whole_rows(1000, &material.floats);
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<f32>(x.len())?);
    let plan = LogSoftmax::new(rows, n).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let check =
        Check::compare(&dy.read()?, &reference::log_softmax(n, x), &reference::log_softmax_bound(n, x));
    outcome(gpu, format!("{rows}x{n}"), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

fn rope(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (heads, tokens, size) = (16, 128, 64);
    let batch = (material.floats.len() / (heads * tokens * size)).max(1);
    let x = &material.floats[..batch * heads * tokens * size];
    let angle = |i: usize| (i / 32) as f64 * 1e4f64.powf(-((i % 32) as f64) / 32.0);
    let table = |f: fn(f64) -> f64| (0..tokens * size / 2).map(|i| f(angle(i)) as f32).collect::<Vec<_>>();
    let (cos, sin) = (table(f64::cos), table(f64::sin));
    let (dx, dc, ds) = (gpu.upload(x)?, gpu.upload(&cos)?, gpu.upload(&sin)?);
    let dy = gpu.alloc::<f32>(x.len())?;
    let op = Rope::new(batch, heads, tokens, size);
    let plan = op.plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dc, &ds, &dy))?;
    let want = reference::rope(&op, x, (&cos, &sin), None);
    let bounds = reference::rope_bound(&op, x, (&cos, &sin), None);
    let check = Check::compare(&dy.read()?, &want, &bounds);
    let shape = format!("{batch}x{heads}x{tokens}x{size}");
    outcome(gpu, shape, plan.report(), check, |rec| plan.record(rec, &dx, &dc, &ds, &dy))
}

fn layer_norm(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (rows, n, x) = whole_rows(768, &material.floats);
    let (gamma, beta) = (vec![0.5; n], vec![-0.25; n]);
    let op = LayerNorm::new(rows, n);
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<f32>(x.len())?);
    let (dg, db) = (gpu.upload(&gamma)?, gpu.upload(&beta)?);
    let plan = op.clone().with_beta().plan::<f32>(gpu)?;
    run(gpu, |rec| plan.with_beta(&db).record(rec, &dx, &dg, &dy))?;
    let want = reference::layer_norm(&op, x, &gamma, Some(&beta));
    let bounds = reference::layer_norm_bound(&op, x, &gamma, Some(&beta));
    let check = Check::compare(&dy.read()?, &want, &bounds);
    outcome(gpu, format!("{rows}x{n}"), plan.report(), check, |rec| {
        plan.with_beta(&db).record(rec, &dx, &dg, &dy)
    })
}

fn rms_norm(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (rows, n, x) = whole_rows(768, &material.floats);
    let gamma = vec![0.5; n];
    let op = RmsNorm::new(rows, n);
    let (dx, dg, dy) = (gpu.upload(x)?, gpu.upload(&gamma)?, gpu.alloc::<f32>(x.len())?);
    let plan = op.plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dg, &dy))?;
    let (want, bounds) =
        (reference::rms_norm(&op, x, &gamma, None), reference::rms_norm_bound(&op, x, &gamma, None));
    let check = Check::compare(&dy.read()?, &want, &bounds);
    outcome(gpu, format!("{rows}x{n}"), plan.report(), check, |rec| plan.record(rec, &dx, &dg, &dy))
}

/// Planes of 56 x 56, in one image.
fn planes(x: &[f32]) -> ([usize; 4], &[f32]) {
    let planes = x.len() / (56 * 56);
    ([1, planes, 56, 56], &x[..planes * 56 * 56])
}

/// Two images of 8 channels of 28 x 28, weights for 8 filters of 3 x 3, and as many elements as the images have.
fn layer(x: &[f32]) -> (Conv, [&[f32]; 3]) {
    let take = |from: usize, len: usize| &x[from..from + len];
    let layer = Conv::new([2, 8, 28, 28], 8, [3, 3]).pad([1, 1]);
    (layer, [take(0, 12544), take(12544, 576), take(6000, 12544)])
}

fn conv(gpu: &Gpu, variant: &str, x: &[f32]) -> Result<Outcome> {
    let (layer, [x, w, _]) = layer(x);
    checked_conv(gpu, &layer.variant(variant), x, w)
}

fn conv_depthwise(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (layer, [x, w, _]) = layer(&material.floats);
    checked_conv(gpu, &layer.groups(8), x, &w[..72])
}

fn checked_conv(gpu: &Gpu, op: &Conv, x: &[f32], w: &[f32]) -> Result<Outcome> {
    let (dx, dw, y) = (gpu.upload(x)?, gpu.upload(w)?, gpu.alloc::<f32>(x.len())?);
    let plan = op.plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dw, &y))?;
    let (want, bounds) = (reference::conv(op, x, w, None)?, reference::conv_bound(op, x, w, None)?);
    let check = Check::compare(&y.read()?, &want, &bounds);
    outcome(gpu, LAYER.into(), plan.report(), check, |rec| plan.record(rec, &dx, &dw, &y))
}

const LAYER: &str = "2x8x28x28 by 3x3";

fn conv_transpose(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (_, [x, w, _]) = layer(&material.floats);
    let op = ConvTranspose::new([2, 8, 28, 28], 8, [3, 3]).stride([2, 2]).pad([1, 1]).output_padding([1, 1]);
    let (dx, dw, y) = (gpu.upload(x)?, gpu.upload(w)?, gpu.alloc::<f32>(4 * x.len())?);
    let plan = op.plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dw, &y))?;
    let want = reference::conv_transpose(&op, x, w, None)?;
    let bounds = reference::conv_transpose_bound(&op, x, w, None)?;
    let check = Check::compare(&y.read()?, &want, &bounds);
    outcome(gpu, LAYER.into(), plan.report(), check, |rec| plan.record(rec, &dx, &dw, &y))
}

fn conv_backward_data(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (layer, [_, w, dy]) = layer(&material.floats);
    let op = ConvBackwardData::new(&layer);
    let (gradient, weights, dx) = (gpu.upload(dy)?, gpu.upload(w)?, gpu.alloc::<f32>(dy.len())?);
    let plan = op.plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &gradient, &weights, &dx))?;
    let want = reference::conv_backward_data(&op, dy, w)?;
    let bounds = reference::conv_backward_data_bound(&op, dy, w)?;
    let check = Check::compare(&dx.read()?, &want, &bounds);
    outcome(gpu, LAYER.into(), plan.report(), check, |rec| plan.record(rec, &gradient, &weights, &dx))
}

fn conv_backward_weights(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (layer, [x, w, dy]) = layer(&material.floats);
    let op = ConvBackwardWeights::new(&layer);
    let (dx, gradient, dw) = (gpu.upload(x)?, gpu.upload(dy)?, gpu.alloc::<f32>(w.len())?);
    let plan = op.plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &gradient, &dw))?;
    let want = reference::conv_backward_weights(&op, x, dy)?;
    let bounds = reference::conv_backward_weights_bound(&op, x, dy)?;
    let check = Check::compare(&dw.read()?, &want, &bounds);
    outcome(gpu, LAYER.into(), plan.report(), check, |rec| plan.record(rec, &dx, &gradient, &dw))
}

/// Windows two cells apart.
fn pool(gpu: &Gpu, kind: PoolKind, kernel: [usize; 2], x: &[f32]) -> Result<Outcome> {
    let (shape, x) = planes(x);
    let op = Pool2d::new(kind, shape, kernel).stride([2, 2]);
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<f32>(op.output_shape()?.iter().product())?);
    let plan = op.plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let (want, bounds) = (reference::pool(&op, x, None)?, reference::pool_bound(&op, x, None)?);
    let check = Check::compare(&dy.read()?, &want, &bounds);
    outcome(gpu, format!("{}x56x56", shape[1]), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// The output of the pooling is as large as a quarter of its input, which serves as its gradient.
fn pool_backward(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (shape, x) = planes(&material.floats);
    let op = Pool2dBackward::new(PoolKind::Max, shape, [2, 2]);
    let gradients = &x[..x.len() / 4];
    let (dx, dy, dg) = (gpu.upload(x)?, gpu.upload(gradients)?, gpu.alloc::<f32>(x.len())?);
    let plan = op.plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy, &dg))?;
    let want = reference::pool_backward(&op, x, gradients)?;
    let bounds = reference::pool_backward_bound(&op, x, gradients)?;
    let check = Check::compare(&dg.read()?, &want, &bounds);
    outcome(gpu, format!("{}x56x56", shape[1]), plan.report(), check, |rec| plan.record(rec, &dx, &dy, &dg))
}

/// An op of floats: what it writes, in the order of its operands, against what is wanted.
fn floats<const N: usize>(
    gpu: &Gpu,
    op: &impl Op<f32>,
    size: String,
    given: &[&[f32]],
    want: &[Vec<f32>; N],
    bounds: &[Vec<f64>; N],
) -> Result<Outcome> {
    let executable = op.plan::<f32>(gpu)?.into_executable();
    let mut given = given.iter();
    let operands = executable.program().operands.iter().map(|operand| match operand.access {
        Access::Write => gpu.alloc::<f32>(operand.len),
        _ => gpu.upload(given.next().copied().unwrap_or_default()),
    });
    let buffers = operands.collect::<Result<Vec<_>>>()?;
    let slices: Vec<_> = buffers.iter().map(|buffer| Slice::from(buffer).untyped()).collect();
    run(gpu, |rec| executable.record(rec, &slices))?;
    let written = (executable.program().operands.iter().zip(&buffers))
        .filter(|(operand, _)| operand.access != Access::Read)
        .map(|(_, buffer)| buffer.read())
        .collect::<Result<Vec<_>>>()?;
    let checks = written.iter().zip(want).zip(bounds).map(|((got, want), b)| Check::compare(got, want, b));
    let check = checks.reduce(Check::and).unwrap_or_else(|| exact(false));
    outcome(gpu, size, Report::of(&executable), check, |rec| executable.record(rec, &slices))
}

fn softmax_backward(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (rows, n, x) = whole_rows(1000, &material.floats);
    let y = reference::softmax(n, x);
    let (want, bound) = (reference::softmax_backward(n, &y, x), reference::softmax_backward_bound(n, &y, x));
    let op = SoftmaxBackward::new(rows, n);
    floats(gpu, &op, format!("{rows}x{n}"), &[&y, x], &[want], &[bound])
}

fn log_softmax_backward(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (rows, n, x) = whole_rows(1000, &material.floats);
    let y = reference::log_softmax(n, x);
    let want = reference::log_softmax_backward(n, &y, x);
    let bound = reference::log_softmax_backward_bound(n, &y, x);
    floats(gpu, &LogSoftmaxBackward::new(rows, n), format!("{rows}x{n}"), &[&y, x], &[want], &[bound])
}

fn cross_entropy(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (rows, n, x) = whole_rows(1000, &material.floats);
    let labels: Vec<u32> = (0..rows).map(|row| (row * 7 % n) as u32).collect();
    let (dx, dl) = (gpu.upload(x)?, gpu.upload(&labels)?);
    let (losses, mean, gradient) =
        (gpu.alloc::<f32>(rows)?, gpu.alloc::<f32>(1)?, gpu.alloc::<f32>(x.len())?);
    let plan = CrossEntropy::new(rows, n).with_gradient().plan::<f32>(gpu)?;
    run(gpu, |rec| plan.with_dx(&gradient).record(rec, &dx, &dl, &losses, &mean))?;
    let want = reference::cross_entropy(n, x, &labels);
    let bounds = reference::cross_entropy_bound(n, x, &labels);
    let check = Check::compare(&losses.read()?, &want.0, &bounds.0)
        .and(Check::compare(&mean.read()?, &[want.1], &[bounds.1]))
        .and(Check::compare(&gradient.read()?, &want.2, &bounds.2));
    let again = |rec: &mut Recorder| plan.with_dx(&gradient).record(rec, &dx, &dl, &losses, &mean);
    outcome(gpu, format!("{rows}x{n}"), plan.report(), check, again)
}

fn squared_error(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (x, target) = halves(&material.floats);
    let (loss, gradient) = reference::squared_error(x, target);
    let (loss_bound, bound) = reference::squared_error_bound(x, target);
    let op = SquaredError::new(x.len()).with_gradient();
    let (want, bounds) = ([vec![loss], gradient], [vec![loss_bound], bound]);
    floats(gpu, &op, x.len().to_string(), &[x, target], &want, &bounds)
}

fn layer_norm_backward(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (rows, n, x) = whole_rows(768, &material.floats);
    let (op, gamma) = (LayerNormBackward::new(rows, n), vec![0.5; n]);
    let want = reference::layer_norm_backward(&op, x, &gamma, x);
    let bounds = reference::layer_norm_backward_bound(&op, x, &gamma, x);
    floats(gpu, &op, format!("{rows}x{n}"), &[x, &gamma, x], &want, &bounds)
}

fn rms_norm_backward(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (rows, n, x) = whole_rows(768, &material.floats);
    let (op, gamma) = (RmsNormBackward::new(rows, n), vec![0.5; n]);
    let want = reference::rms_norm_backward(&op, x, &gamma, x);
    let bounds = reference::rms_norm_backward_bound(&op, x, &gamma, x);
    floats(gpu, &op, format!("{rows}x{n}"), &[x, &gamma, x], &want, &bounds)
}

fn activation_backward(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let x = &material.floats;
    let want = reference::activation_backward(Activation::Gelu, x, x);
    let bound = reference::activation_backward_bound(Activation::Gelu, x, x);
    let op = ActivationBackward::new(Activation::Gelu, x.len());
    floats(gpu, &op, format!("gelu {}", x.len()), &[x, x], &[want], &[bound])
}

fn bias_backward(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (rows, n, x) = whole_rows(1000, &material.floats);
    let (want, bound) = (reference::bias_backward(n, 1, x), reference::bias_backward_bound(n, 1, x));
    floats(gpu, &BiasBackward::new(rows, n, 1), format!("{rows}x{n}"), &[x], &[want], &[bound])
}

fn batch_norm(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (shape, x) = planes(&material.floats);
    let op = BatchNorm::new(shape).activation(Activation::Relu);
    let [mean, variance, gamma, beta] = [0.1, 0.4, 0.5, -0.25].map(|value| vec![value; shape[1]]);
    let channels: [&[f32]; 4] = [&mean, &variance, &gamma, &beta];
    let (want, bound) =
        (reference::batch_norm(&op, x, channels), reference::batch_norm_bound(&op, x, channels));
    let given = [x, &mean, &variance, &gamma, &beta];
    floats(gpu, &op, format!("{}x56x56", shape[1]), &given, &[want], &[bound])
}

fn sgd(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (p, g) = halves(&material.floats);
    let op = Sgd::new(p.len(), 0.1).decay(0.01).with_momentum(0.9);
    let want = reference::sgd(&op, p, g, p);
    let bounds = reference::sgd_bound(&op, p, g, p);
    floats(gpu, &op, p.len().to_string(), &[p, g, p], &want, &bounds)
}

fn adam(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (p, g) = halves(&material.floats);
    let op = Adam::new(p.len(), 0.1);
    let squares: Vec<f32> = p.iter().map(|p| p * p).collect();
    let given = [p, g, p, &squares, &[0.5, 0.5]];
    let (want, bounds) = (reference::adam(&op, given), reference::adam_bound(&op, given));
    floats(gpu, &op, p.len().to_string(), &given, &want, &bounds)
}

/// Embeddings of the input's first bytes.
fn gather_rows(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let n = 384;
    let indices: Vec<u32> =
        material.bytes[..material.floats.len() / n].iter().map(|&b| u32::from(b)).collect();
    let table = &material.floats[..256 * n];
    let (dx, di) = (gpu.upload(table)?, gpu.upload(&indices)?);
    let dy = gpu.alloc::<f32>(indices.len() * n)?;
    let plan = GatherRows::new(256, n, indices.len()).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &di, &dy))?;
    let check = Check::exact(&dy.read()?, reference::gather_rows(n, table, &indices).into_iter());
    let size = format!("{} of 256x{n}", indices.len());
    outcome(gpu, size, plan.report(), check, |rec| plan.record(rec, &dx, &di, &dy))
}

fn mean_pool(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (tokens, width) = (128, 384);
    let (batch, _, x) = whole_rows(tokens * width, &material.floats);
    let lengths: Vec<u32> = (0..batch).map(|b| 1 + (b * 37 % tokens) as u32).collect();
    let op = MeanPool::new(batch, tokens, width).normalized();
    let (dx, dl, dy) = (gpu.upload(x)?, gpu.upload(&lengths)?, gpu.alloc::<f32>(batch * width)?);
    let plan = op.plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dl, &dy))?;
    let want = reference::mean_pool(&op, x, &lengths);
    let check = Check::compare(&dy.read()?, &want, &reference::mean_pool_bound(&op, x, &lengths));
    let again = |rec: &mut Recorder| plan.record(rec, &dx, &dl, &dy);
    outcome(gpu, format!("{batch}x{tokens}x{width}"), plan.report(), check, again)
}

fn sort(gpu: &Gpu, descending: bool, keys: &[f32]) -> Result<Outcome> {
    let (dx, dy) = (gpu.upload(keys)?, gpu.alloc::<f32>(keys.len())?);
    let plan = RadixSort::new(keys.len()).descending(descending).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let order = reference::sort_positions(keys, descending, 0..32);
    let check = Check::exact(&dy.read()?, order.iter().map(|&i| keys[i]));
    outcome(gpu, keys.len().to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// The values are the positions, so that they show whether equal keys kept their order.
fn sort_pairs(gpu: &Gpu, floats: &[f32]) -> Result<Outcome> {
    let (keys, _) = halves(floats);
    let n = keys.len();
    let values: Vec<u32> = (0..n as u32).collect();
    let (dx, dy) = (gpu.upload(keys)?, gpu.upload(&values)?);
    let (sx, sy) = (gpu.alloc::<f32>(n)?, gpu.alloc::<u32>(n)?);
    let plan = RadixSort::new(n).with_values().plan::<f32>(gpu)?;
    run(gpu, |rec| plan.with_values(&dy, &sy).record(rec, &dx, &sx))?;
    let order = reference::sort_positions(keys, false, 0..32);
    let check = Check::exact(&sx.read()?, order.iter().map(|&i| keys[i]))
        .and(Check::exact(&sy.read()?, order.iter().map(|&i| i as u32)));
    outcome(gpu, n.to_string(), plan.report(), check, |rec| plan.with_values(&dy, &sy).record(rec, &dx, &sx))
}

fn top_k(gpu: &Gpu, k: usize, x: &[f32]) -> Result<Outcome> {
    let k = k.min(x.len());
    let dx = gpu.upload(x)?;
    let (values, indices) = (gpu.alloc::<f32>(k)?, gpu.alloc::<u32>(k)?);
    let plan = TopK::new(x.len(), k).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &values, &indices))?;
    let best = reference::top_k(x, k, false);
    let check = Check::exact(&values.read()?, best.iter().map(|&i| x[i]))
        .and(Check::exact(&indices.read()?, best.iter().map(|&i| i as u32)));
    let size = format!("{k} of {}", x.len());
    outcome(gpu, size, plan.report(), check, |rec| plan.record(rec, &dx, &values, &indices))
}

/// Causal attention of as many queries as keys.
fn attention(gpu: &Gpu, variant: &str, material: &Material) -> Result<Outcome> {
    let (heads, t, d) = (4, material.side / 2, 64);
    let op = Attention::new(1, heads, heads, t, t, d).causal().variant(variant);
    let n = heads * t * d;
    let x = |from: usize| material.floats.iter().cycle().skip(from).take(n).copied().collect::<Vec<f32>>();
    attend(gpu, &op, format!("{heads}x{t}x{d} causal"), &x(0), [&x(1), &x(2)])
}

/// A query of 8 heads that share 2 against a cache in halves.
fn attention_of_one_token(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (heads, kv_heads, keys, d) = (8, 2, 4 * material.side, 128);
    let op = Attention::new(1, heads, kv_heads, 1, keys, d);
    let x = |from: usize, n: usize| {
        let floats = material.floats.iter().cycle().skip(from).take(n);
        floats.map(|x| f16::from_f32(*x)).collect::<Vec<_>>()
    };
    let n = kv_heads * keys * d;
    attend(gpu, &op, format!("{heads}/{kv_heads} heads, {keys} keys"), &x(0, heads * d), [&x(1, n), &x(2, n)])
}

fn attend<T: Number + Into<f64>>(
    gpu: &Gpu,
    op: &Attention,
    shape: String,
    q: &[T],
    [k, v]: [&[T]; 2],
) -> Result<Outcome>
where
    Attention: Op<T>,
    f64: From<T>,
{
    let (dq, dk, dv, out) = (gpu.upload(q)?, gpu.upload(k)?, gpu.upload(v)?, gpu.alloc::<T>(q.len())?);
    let plan = op.plan::<T>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dq, &dk, &dv, &out))?;
    let inputs = AttentionInputs::default();
    let want = reference::attention(op, q, k, v, inputs);
    let check = Check::compare(&out.read()?, &want, &reference::attention_bound(op, q, k, v, inputs));
    outcome(gpu, shape, plan.report(), check, |rec| plan.record(rec, &dq, &dk, &dv, &out))
}

fn kv_append(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (heads, tokens, keys, d) = (8, 16, material.side, 64);
    let op = KvAppend::new(1, heads, tokens, keys, d);
    let x: Vec<f16> = material.floats.iter().take(heads * tokens * d).map(|x| f16::from_f32(*x)).collect();
    let (lengths, cache) = ([3u32], vec![f16::ZERO; heads * keys * d]);
    let (dx, dl, dk, dv) = (gpu.upload(&x)?, gpu.upload(&lengths)?, gpu.upload(&cache)?, gpu.upload(&cache)?);
    let plan = op.plan::<f16>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dx, &dl, &dk, &dv))?;
    let mut want = vec![0f32; cache.len()];
    reference::kv_append(&op, &x, &lengths, None, &mut want);
    let got: Vec<f32> = dv.read()?.into_iter().map(f16::to_f32).collect();
    let check = Check::compare(&got, &want, &vec![0.0; want.len()]);
    outcome(gpu, format!("{heads}x{tokens}x{d}"), plan.report(), check, |rec| {
        plan.record(rec, &dx, &dx, &dl, &dk, &dv)
    })
}
