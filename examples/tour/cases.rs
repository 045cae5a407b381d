//! What the tour runs: a line in [`CASES`] and a function for each op.

use crate::material::Material;
use tilework::prelude::*;
use tilework::primitives::{Operator, Reducer};
use tilework::reference::{self, Number};
use tilework::{DType, Report, Result};

/// Rows of the table, for every adapter.
pub(crate) const CASES: &[Case] = &[
    Case { op: "map", form: "relu", dtype: DType::F32, run: map_relu },
    Case { op: "zip", form: "mul", dtype: DType::F32, run: zip_mul },
    Case { op: "axpy", form: "", dtype: DType::F32, run: axpy },
    Case { op: "reduce", form: "sum", dtype: DType::F32, run: reduce_sum },
    Case { op: "reduce", form: "sum", dtype: DType::U8, run: reduce_sum_of_bytes },
    Case { op: "reduce", form: "max, rows", dtype: DType::F32, run: reduce_max_of_rows },
    Case { op: "reduce", form: "argmin", dtype: DType::U8, run: reduce_argmin_of_bytes },
    Case { op: "gemm", form: "", dtype: DType::F32, run: gemm },
];

/// A row of the table: an op in one of its forms.
pub(crate) struct Case {
    pub(crate) op: &'static str,
    pub(crate) form: &'static str,
    pub(crate) dtype: DType,
    pub(crate) run: fn(&Gpu, &Material) -> Result<Outcome>,
}

/// How an op did.
pub(crate) struct Outcome {
    pub(crate) size: String,
    pub(crate) report: Report,
    pub(crate) seconds: f64,
    /// The largest difference from the reference; relative to results above 1.
    pub(crate) error: f64,
    /// Whether every difference is within its bound.
    pub(crate) passed: bool,
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

/// How far results are from the reference.
struct Check {
    error: f64,
    passed: bool,
}

impl Check {
    fn add(&mut self, other: Check) {
        // A NaN fails, and stays visible.
        if !(other.error <= self.error) {
            self.error = other.error;
        }
        self.passed &= other.passed;
    }
}

/// Compares what was got with what is wanted, within a bound each.
fn compare(results: impl Iterator<Item = (f64, f64, f64)>) -> Check {
    let mut check = Check { error: 0.0, passed: true };
    for (got, want, bound) in results {
        let difference =
            if got == want || (got.is_nan() && want.is_nan()) { 0.0 } else { (got - want).abs() };
        check.add(Check { error: difference / want.abs().max(1.0), passed: difference <= bound });
    }
    check
}

/// As [`compare`], for ops that are exact on the bytes at hand.
fn compare_exactly<T: Number>(got: &[T], want: &[T]) -> Check {
    let check = compare(got.iter().zip(want).map(|(g, w)| (g.to_f64(), w.to_f64(), 0.0)));
    Check { passed: check.passed && got.len() == want.len(), ..check }
}

/// Runs once.
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
    let runs = if gpu.profile().is_cpu() { 5 } else { 15 };
    let seconds = gpu.measure(runs, record)?.median();
    Ok(Outcome { size, report, seconds, error: check.error, passed: check.passed })
}

fn map_relu(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let x = &material.floats;
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<f32>(x.len())?);
    let plan = Map::new(MapFn::Relu, x.len()).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let check = compare_exactly(&dy.read()?, &reference::map(&MapFn::Relu, x)?);
    outcome(gpu, x.len().to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

fn zip_mul(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let (x, y) = halves(&material.floats);
    let (dx, dy, dz) = (gpu.upload(x)?, gpu.upload(y)?, gpu.alloc::<f32>(x.len())?);
    let plan = Zip::new(ZipFn::Mul, x.len()).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy, &dz))?;
    let check = compare_exactly(&dz.read()?, &reference::zip(&ZipFn::Mul, x, y)?);
    outcome(gpu, x.len().to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &dy, &dz))
}

fn axpy(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    // Half a multiple of 1/128, plus another, is exact.
    let alpha = 0.5;
    let (x, y) = halves(&material.floats);
    let (dx, dy) = (gpu.upload(x)?, gpu.upload(y)?);
    let plan = Axpy::new(x.len(), alpha).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &dx, &dy))?;
    let mut want = y.to_vec();
    reference::axpy(alpha, x, &mut want)?;
    let check = compare_exactly(&dy.read()?, &want);
    outcome(gpu, x.len().to_string(), plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// Two halves of equal length.
fn halves(floats: &[f32]) -> (&[f32], &[f32]) {
    let n = floats.len() / 2;
    (&floats[..n], &floats[n..2 * n])
}

fn reduce_sum(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    reduce(gpu, Sum, 1, &material.floats)
}

fn reduce_sum_of_bytes(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    reduce(gpu, Sum, 1, &material.bytes)
}

fn reduce_max_of_rows(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    // Rows of no round length.
    reduce(gpu, Max, material.floats.len() / 1000, &material.floats)
}

fn reduce_argmin_of_bytes(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    reduce(gpu, ArgMin, 1, &material.bytes)
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
    // There is a reference for every operator but a user's own.
    let want = reference::reduce(&operator, rows, n, x).unwrap_or_default();
    let bound = reference::reduce_bound(&operator, rows, n, x);
    let got = dy.read()?;
    let mut check = compare(got.iter().zip(want.iter().zip(&bound)).map(|(g, (w, b))| (g.to_f64(), *w, *b)));
    check.passed &= want.len() == rows;
    let size = if rows == 1 { n.to_string() } else { format!("{rows}x{n}") };
    outcome(gpu, size, plan.report(), check, |rec| plan.record(rec, &dx, &dy))
}

/// Multiply-adds that the reference of the product may take.
const CHECKED_PRODUCTS: usize = 1 << 30;

fn gemm(gpu: &Gpu, material: &Material) -> Result<Outcome> {
    let n = material.side;
    let (a, b) = (&material.floats[..n * n], &material.floats[n * n..2 * n * n]);
    let (da, db, dc) = (gpu.upload(a)?, gpu.upload(b)?, gpu.alloc::<f32>(n * n)?);
    let plan = Gemm::new(n, n, n).plan::<f32>(gpu)?;
    run(gpu, |rec| plan.record(rec, &da, &db, &dc))?;
    let got = dc.read()?;

    // All rows of the result, or so many, evenly spread, that the reference takes seconds. A row of the result is
    // the product of a row of A with B, so the reference is asked for rows, on every core.
    let step = (n * n * n).div_ceil(CHECKED_PRODUCTS).min(n);
    let rows: Vec<usize> = (0..n).step_by(step).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let one_row = Gemm::new(1, n, n);
    let check_rows = |rows: &[usize]| -> Result<Check> {
        let mut all = Check { error: 0.0, passed: true };
        for &row in rows {
            let (a, got) = (&a[row * n..][..n], &got[row * n..][..n]);
            let zeros = vec![0.0; n];
            let want = reference::gemm(&one_row, a, b, None, &zeros)?;
            let bound = reference::gemm_bound(&one_row, a, b, None, &zeros)?;
            let check =
                compare(got.iter().zip(want.iter().zip(&bound)).map(|(g, (w, b))| (f64::from(*g), *w, *b)));
            all.add(check);
        }
        Ok(all)
    };
    let checks: Vec<Result<Check>> = std::thread::scope(|scope| {
        let shares = rows.chunks(rows.len().div_ceil(cores));
        let threads: Vec<_> = shares.map(|share| scope.spawn(|| check_rows(share))).collect();
        // A thread that panicked has checked nothing.
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or(Ok(Check { error: f64::NAN, passed: false })))
            .collect()
    });
    let mut check = Check { error: 0.0, passed: true };
    for part in checks {
        check.add(part?);
    }
    let size = format!("{n}x{n}x{n}");
    outcome(gpu, size, plan.report(), check, |rec| plan.record(rec, &da, &db, &dc))
}
