//! The cases: a line in [`CASES`] for each op and type, and a function that makes its problem of a size.

use super::check::{Effort, check_product};
use super::common::measured::{Check, sparse_matrix};
use super::loops;
use super::problem::{Array, Problem, Processor};
#[cfg(feature = "cuda")]
use half::bf16;
use half::f16;
use std::cell::OnceCell;
use std::rc::Rc;
use tilework::attention::Attention;
use tilework::gpu::Executable;
use tilework::prelude::*;
use tilework::primitives::Operator;
use tilework::program::{Cost, DeviceProfile, Op};
use tilework::reference::{self, AttentionInputs, Number};
use tilework::sparse::{Csr, SparseMatrix};
use tilework::{Element, Result};

/// An op with an element type.
pub(crate) struct Case {
    pub(crate) op: &'static str,
    pub(crate) dtype: &'static str,
    /// The meaning of a size.
    pub(crate) axis: &'static str,
    /// Sizes for every backend.
    pub(crate) sizes: &'static [usize],
    /// Larger sizes, for cards only.
    pub(crate) large: &'static [usize],
    /// Maximum size.
    pub(crate) most: usize,
    pub(crate) problem: fn(usize) -> Result<Problem>,
}

impl Case {
    /// Returns op and type as one word.
    pub(crate) fn id(&self) -> String {
        format!("{}-{}", self.op, self.dtype.replace(' ', "-"))
    }
}

const fn square(op: &'static str, dtype: &'static str, problem: fn(usize) -> Result<Problem>) -> Case {
    let (sizes, large) = (&[64, 128, 256, 512], &[1024, 2048, 4096]);
    Case { op, dtype, axis: "rows and columns", sizes, large, most: 1 << 14, problem }
}

const fn list(op: &'static str, dtype: &'static str, problem: fn(usize) -> Result<Problem>) -> Case {
    let (sizes, large) = (&[1 << 12, 1 << 16, 1 << 20], &[1 << 22, 1 << 24, 1 << 26]);
    Case { op, dtype, axis: "elements", sizes, large, most: 1 << 28, problem }
}

/// Ops on a plane, bound by memory.
const fn plane(op: &'static str, problem: fn(usize) -> Result<Problem>) -> Case {
    Case { sizes: &[256, 512, 1024, 2048], large: &[4096, 8192], ..square(op, "f32", problem) }
}

const fn heads(dtype: &'static str, problem: fn(usize) -> Result<Problem>) -> Case {
    let (sizes, large) = (&[64, 128, 256], &[512, 1024, 2048, 4096, 8192]);
    let axis = "queries and keys of 8 heads";
    Case { op: "attention", dtype, axis, sizes, large, most: 1 << 16, problem }
}

const fn layers(dtype: &'static str, problem: fn(usize) -> Result<Problem>) -> Case {
    let axis = "rows and columns of 64 channels, 8 images";
    Case { op: "conv", dtype, axis, sizes: &[7, 14, 28], large: &[56, 112], most: 512, problem }
}

pub(crate) const CASES: &[Case] = &[
    list("map", "f32", map),
    list("axpy", "f32", axpy),
    list("zip", "f32", zip),
    list("reduce", "f32", reduce),
    list("scan", "f32", scan),
    list("histogram", "u8", histogram),
    Case { sizes: &[1 << 12, 1 << 14, 1 << 16], large: &[1 << 20, 1 << 22], ..list("sort", "u32", sort) },
    list("softmax", "f32", softmax),
    plane("transpose", transpose),
    plane("gemv", gemv),
    square("gemm", "f32", gemm_f32),
    square("gemm", "f32 tensor", gemm_tensor),
    square("gemm", "f32 split", gemm_split),
    square("gemm", "f16", gemm_f16),
    #[cfg(feature = "cuda")]
    square("gemm", "bf16", gemm_bf16),
    Case {
        axis: "products of 32 x 32",
        sizes: &[64, 256, 1024],
        large: &[4096, 16384, 65536],
        most: 1 << 17,
        ..square("gemm-batched", "f32", gemm_batched)
    },
    plane("filter2d", filter2d),
    layers("f32", conv_f32),
    #[cfg(feature = "cuda")]
    layers("f32 tensor", conv_tensor),
    #[cfg(feature = "cuda")]
    layers("f32 split", conv_split),
    #[cfg(feature = "cuda")]
    layers("f16", conv_f16),
    heads("f32", attention::<f32>),
    heads("f16", attention_f16),
    Case {
        axis: "rows, 0 to 31 entries in each",
        sizes: &[1 << 10, 1 << 14, 1 << 17],
        large: &[1 << 20, 1 << 22],
        most: 1 << 24,
        ..square("spmv", "f32", spmv)
    },
];

/// Numbers in [-0.5, 0.5) with `bits` bits, by seed.
fn numbers<T: Number>(n: usize, seed: u32, bits: u32) -> Rc<Vec<T>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let step = 0.5f64.powi(bits as i32);
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        T::from_f64(f64::from(state >> (32 - bits)) * step - 0.5)
    };
    Rc::new(std::iter::repeat_with(next).take(n).collect())
}

/// Numbers that use all bits of a float.
fn noise<T: Number>(n: usize, seed: u32) -> Rc<Vec<T>> {
    numbers(n, seed, 24)
}

/// The given inputs, followed by an output of zeros.
fn with_output<T: Element>(inputs: &[Rc<dyn Array>], len: usize) -> Vec<Rc<dyn Array>> {
    let output: Rc<dyn Array> = Rc::new(vec![T::default(); len]);
    inputs.iter().cloned().chain([output]).collect()
}

/// Clones what a closure moves.
macro_rules! owning {
    ($($value:ident),+ => $closure:expr) => {{
        $(let $value = $value.clone();)+
        $closure
    }};
}

/// Returns a check of a result, or its first elements, against `expected`: values and allowed errors. The reference
/// runs once for all backends.
fn within<G: Number, W: Copy + Into<f64>>(
    expected: impl Fn() -> Result<(Vec<W>, Vec<f64>)>,
) -> impl Fn(&[G]) -> Result<Check> {
    let known = OnceCell::new();
    move |got| {
        let (want, bounds) = once(&known, &expected)?;
        Ok(Check::compare(got.get(..want.len()).unwrap_or(got), want, bounds))
    }
}

fn once<'a, T>(known: &'a OnceCell<T>, make: &impl Fn() -> Result<T>) -> Result<&'a T> {
    if let Some(value) = known.get() {
        return Ok(value);
    }
    let value = make()?;
    Ok(known.get_or_init(|| value))
}

/// A problem that an op and the reference `want` solve, from inputs to `len` elements. Results may differ from
/// the reference by `bound`.
fn referenced<W: Copy + Into<f64> + 'static>(
    op: impl Op<f32> + 'static, size: String, mut operands: Vec<Rc<dyn Array>>, len: usize,
    want: impl Fn() -> Result<Vec<W>> + Clone + 'static, bound: impl Fn() -> Result<Vec<f64>> + 'static,
) -> Result<Problem> {
    let check = within::<f32, W>(owning!(want => move || Ok((want()?, bound()?))));
    operands.push(Rc::new(vec![0f32; len]));
    let problem = Problem::new::<f32, f32, _>(op, size, operands, check)?;
    Ok(problem.processor(Processor::Reference, len, move |y| {
        *y = want()?.into_iter().map(|x| x.into() as f32).collect();
        Ok(())
    }))
}

/// As [`referenced`], for exact results that may be of another type.
fn exact<T: Element, R: Element>(
    op: impl Op<T> + 'static, size: String, input: Rc<dyn Array>, len: usize,
    want: impl Fn() -> Result<Vec<R>> + Clone + 'static,
) -> Result<Problem> {
    let known = OnceCell::new();
    let check = owning!(want => move |got: &[R]| Ok(Check::exact(got, once(&known, &want)?.iter().copied())));
    let problem = Problem::new::<T, R, _>(op, size, with_output::<R>(&[input], len), check)?;
    Ok(problem.processor(Processor::Reference, len, move |y| {
        *y = want()?;
        Ok(())
    }))
}

fn map(n: usize) -> Result<Problem> {
    let x = noise::<f32>(n, 1);
    let want = owning!(x => move || reference::map(&MapFn::Tanh, &x));
    let bound = owning!(x => move || reference::map_bound(&MapFn::Tanh, &x));
    let problem = referenced(Map::new(MapFn::Tanh, n), format!("{n}"), vec![x.clone()], n, want, bound)?;
    Ok(problem.processor(Processor::Loops, n, move |y| loops::map(&x, y)))
}

fn axpy(n: usize) -> Result<Problem> {
    const ALPHA: f64 = 0.75;
    let (x, y) = (noise::<f32>(n, 1), noise::<f32>(n, 2));
    let want = owning!(x, y => move || {
        let mut want = y.to_vec();
        reference::axpy(ALPHA, &x, &mut want)?;
        Ok(want)
    });
    let bound = owning!(x, y => move || reference::axpy_bound(ALPHA, &x, &y));
    let check = within::<f32, f32>(owning!(want => move || Ok((want()?, bound()?))));
    let operands: Vec<Rc<dyn Array>> = vec![x.clone(), y.clone()];
    let problem = Problem::new::<f32, f32, _>(Axpy::new(n, ALPHA), format!("{n}"), operands, check)?;
    Ok(problem
        .processor(Processor::Reference, n, move |result: &mut Vec<f32>| {
            *result = want()?;
            Ok(())
        })
        .processor(Processor::Loops, n, move |result| loops::axpy(ALPHA as f32, &x, &y, result)))
}

fn zip(n: usize) -> Result<Problem> {
    let (x, y) = (noise::<f32>(n, 1), noise::<f32>(n, 2));
    let want = owning!(x, y => move || reference::zip(&ZipFn::Mul, &x, &y));
    let bound = owning!(x, y => move || reference::zip_bound(&ZipFn::Mul, &x, &y));
    let op = || Zip::new(ZipFn::Mul, n);
    let problem = referenced(op(), format!("{n}"), vec![x.clone(), y.clone()], n, want, bound)?;
    #[cfg(feature = "cuda")]
    let problem = problem.cuda::<f32>(op());
    Ok(problem.processor(Processor::Loops, n, move |z| loops::zip(&x, &y, z)))
}

fn reduce(n: usize) -> Result<Problem> {
    let x = noise::<f32>(n, 1);
    let want = owning!(x => move || Ok(reference::reduce(&Operator::Sum, 1, n, &x).unwrap_or_default()));
    let bound = owning!(x => move || Ok(reference::reduce_bound(&Operator::Sum, 1, n, &x)));
    let problem = referenced(Reduce::new(Sum, n), format!("sum {n}"), vec![x.clone()], 1, want, bound)?;
    Ok(problem.processor(Processor::Loops, 1, move |y| loops::reduce(&x, y)))
}

fn scan(n: usize) -> Result<Problem> {
    let (x, op) = (noise::<f32>(n, 1), Operator::Sum);
    let want = owning!(x, op => move || Ok(reference::scan(&op, 1, n, false, false, &x).unwrap_or_default()));
    let bound = owning!(x => move || Ok(reference::scan_bound(&op, 1, n, false, false, &x)));
    let problem = referenced(Scan::new(Sum, n), format!("{n}"), vec![x.clone()], n, want, bound)?;
    #[cfg(feature = "cuda")]
    let problem = problem.cuda::<f32>(Scan::new(Sum, n));
    Ok(problem.processor(Processor::Loops, n, move |y| loops::scan(&x, y)))
}

fn histogram(n: usize) -> Result<Problem> {
    let x: Rc<Vec<u8>> = Rc::new(noise::<f32>(n, 1).iter().map(|x| ((x + 0.5) * 256.0) as u8).collect());
    let op = Histogram::new(n, 256).range(0.0, 256.0);
    let want = owning!(x, op => move || reference::histogram(&op, &x));
    let problem = exact::<u8, u32>(op, format!("256 bins random {n}"), x.clone(), 256, want)?;
    Ok(problem.processor(Processor::Loops, 256, move |y| loops::histogram(&x, y)))
}

fn sort(n: usize) -> Result<Problem> {
    // All 32 bits vary.
    let x: Rc<Vec<u32>> = Rc::new((1..=n as u32).map(|i| i.wrapping_mul(0x9e37_79b1).rotate_left(i % 32)).collect());
    let want = owning!(x => move || {
        Ok(reference::sort_positions(&x, false, 0..32).into_iter().map(|i| x[i]).collect())
    });
    let problem = exact::<u32, u32>(RadixSort::new(n), format!("keys {n} random"), x.clone(), n, want)?;
    Ok(problem.processor(Processor::Loops, n, move |y| loops::sort(&x, y)))
}

fn softmax(len: usize) -> Result<Problem> {
    let n = len.clamp(1, 1024);
    let rows = len / n;
    let len = rows * n;
    let x = noise::<f32>(len, 1);
    let want = owning!(x => move || Ok(reference::softmax(n, &x)));
    let bound = owning!(x => move || Ok(reference::softmax_bound(n, &x)));
    let problem = referenced(Softmax::new(rows, n), format!("{rows}x{n}"), vec![x.clone()], len, want, bound)?;
    Ok(problem.processor(Processor::Loops, len, move |y| loops::softmax(n, &x, y)))
}

fn transpose(n: usize) -> Result<Problem> {
    let x = noise::<f32>(n * n, 1);
    let want = owning!(x => move || Ok(reference::transpose(1, n, n, &x)));
    let problem = exact::<f32, f32>(Transpose::new(n, n), format!("{n}x{n}"), x.clone(), n * n, want)?;
    let loops = owning!(x => move |y: &mut Vec<f32>| loops::transpose(n, &x, y));
    Ok(problem
        .processor(Processor::Loops, n * n, loops)
        .processor(Processor::Tiled, n * n, move |y| loops::transpose_tiled(n, &x, y)))
}

fn gemv(n: usize) -> Result<Problem> {
    let (a, x, op) = (noise::<f32>(n * n, 1), noise::<f32>(n, 2), Gemv::new(n, n));
    let want = owning!(a, x, op => move || reference::gemv(&op, &a, &x, &vec![0.0; n]));
    let bound = owning!(a, x, op => move || reference::gemv_bound(&op, &a, &x, &vec![0.0; n]));
    let problem = referenced(op, format!("{n}x{n}"), vec![a.clone(), x.clone()], n, want, bound)?;
    Ok(problem.processor(Processor::Loops, n, move |y| loops::gemv(n, &a, &x, y)))
}

/// Rounds to f32.
fn narrow(result: &[f64]) -> Vec<f32> {
    result.iter().map(|x| *x as f32).collect()
}

/// Stores a reference's result in the output.
fn assign<T>(output: &mut Vec<T>, result: Vec<T>) -> Result<()> {
    *output = result;
    Ok(())
}

/// Maximum multiply-adds of the reference.
const CHECKED: usize = 1 << 27;

/// A square product of factors with `bits` bits, without runners. Sums may err by `slack` times their bound.
fn product<T: Number + Into<f64>>(n: usize, bits: u32, slack: f64) -> (Problem, [Rc<Vec<T>>; 2]) {
    let [a, b] = [1, 2].map(|seed| numbers::<T>(n * n, seed, bits));
    let (a1, b1) = (a.clone(), b.clone());
    let check =
        move |got: &[T]| check_product(&Gemm::new(1, n, n), &a1, &b1, None, got, &Effort { terms: CHECKED, slack });
    let flop = 2.0 * (n as f64).powi(3);
    let cost = Cost { flop, bytes: (3 * n * n * size_of::<T>()) as f64 };
    let operands = with_output::<T>(&[a.clone(), b.clone()], n * n);
    (Problem::of(cost, format!("{n}x{n}x{n}"), operands, check), [a, b])
}

/// Plans the product that `form` sets up for a device.
fn gemm<T: Element>(
    n: usize, form: impl Fn(Gemm, &Gpu) -> Gemm + 'static,
) -> impl Fn(&Gpu) -> Result<Executable> + 'static
where
    Gemm: Op<T>,
{
    move |gpu| Ok(form(Gemm::new(n, n, n), gpu).plan::<T>(gpu)?.into_executable())
}

fn gemm_f32(n: usize) -> Result<Problem> {
    let (problem, [a, b]) = product::<f32>(n, 24, 1.0);
    let problem = problem.wgpu(gemm::<f32>(n, |gemm, _| gemm));
    #[cfg(feature = "cuda")]
    let problem = problem.cuda::<f32>(Gemm::new(n, n, n)).vendor(n, "f32");
    let reference = owning!(a, b => move |c: &mut Vec<f32>| {
        let zeros = vec![0f32; n * n];
        assign(c, narrow(&reference::gemm(&Gemm::new(n, n, n), &a, &b, None, &zeros)?))
    });
    Ok(problem
        .processor(Processor::Reference, n * n, reference)
        .processor(Processor::Loops, n * n, owning!(a, b => move |c| loops::gemm(n, &a, &b, c)))
        .processor(Processor::Tiled, n * n, owning!(a, b => move |c| loops::gemm_tiled(n, &a, &b, c)))
        .processor(Processor::Crate, n * n, move |c| loops::gemm_by_crate(n, &a, &b, c)))
}

/// Matrix hardware truncates sums instead of rounding.
const CUT_OFF: f64 = 4.0;

fn gemm_tensor(n: usize) -> Result<Problem> {
    // Factors that the hardware need not round: only sums err.
    let (problem, _) = product::<f32>(n, 11, CUT_OFF);
    let problem = problem.wgpu(gemm::<f32>(n, |gemm, _| gemm.precision(Precision::Tensor)));
    #[cfg(feature = "cuda")]
    let problem = problem.cuda::<f32>(Gemm::new(n, n, n).precision(Precision::Tensor)).vendor(n, "f32 tensor");
    Ok(problem)
}

fn gemm_split(n: usize) -> Result<Problem> {
    let (problem, _) = product::<f32>(n, 24, CUT_OFF);
    let problem = problem.wgpu(gemm::<f32>(n, |gemm, _| gemm.precision(Precision::Split)));
    // cuBLAS has no split product; its plain product serves the same purpose.
    #[cfg(feature = "cuda")]
    let problem = problem.cuda::<f32>(Gemm::new(n, n, n).precision(Precision::Split)).vendor(n, "f32");
    Ok(problem)
}

fn gemm_f16(n: usize) -> Result<Problem> {
    let form = |gemm: Gemm, gpu: &Gpu| match gpu.profile().cooperative_side() {
        Some(_) => gemm.precision(Precision::Tensor),
        None => gemm,
    };
    let (problem, _) = product::<f16>(n, 11, CUT_OFF);
    let problem = problem.wgpu(gemm::<f16>(n, form));
    #[cfg(feature = "cuda")]
    let problem = problem.cuda::<f16>(Gemm::new(n, n, n)).vendor(n, "f16");
    Ok(problem)
}

#[cfg(feature = "cuda")]
fn gemm_bf16(n: usize) -> Result<Problem> {
    let (problem, _) = product::<bf16>(n, 8, CUT_OFF);
    Ok(problem.cuda::<bf16>(Gemm::new(n, n, n)).vendor(n, "bf16"))
}

fn gemm_batched(batch: usize) -> Result<Problem> {
    const SIDE: usize = 32;
    const EACH: usize = SIDE * SIDE;
    let of = |batch| GemmBatched::new(batch, SIDE, SIDE, SIDE);
    let [a, b] = [1, 2].map(|seed| noise::<f32>(batch * EACH, seed));
    let (a1, b1, a2, b2) = (a.clone(), b.clone(), a.clone(), b.clone());
    // Check only the first products.
    let some = (CHECKED / (EACH * SIDE)).min(batch);
    let check = within::<f32, f64>(move || {
        let (a, b, zeros) = (&a1[..some * EACH], &b1[..some * EACH], vec![0f32; some * EACH]);
        let want = reference::gemm_batched(&of(some), a, b, None, &zeros)?;
        Ok((want, reference::gemm_batched_bound(&of(some), a, b, None, &zeros)?))
    });
    let size = format!("{batch}x{SIDE}x{SIDE}x{SIDE}");
    let operands = with_output::<f32>(&[a, b], batch * EACH);
    let problem = Problem::new::<f32, _, _>(of(batch), size, operands, check)?;
    #[cfg(feature = "cuda")]
    let problem = problem.cuda::<f32>(of(batch));
    Ok(problem.processor(Processor::Reference, batch * EACH, move |c| {
        let zeros = vec![0f32; batch * EACH];
        assign(c, narrow(&reference::gemm_batched(&of(batch), &a2, &b2, None, &zeros)?))
    }))
}

/// Weights of many different values.
fn weights(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * 0.7).sin() / n as f32).collect()
}

fn filter2d(n: usize) -> Result<Problem> {
    let op = move |rows| Filter2d::new([rows, n], [5, 5], &weights(25));
    let x = noise::<f32>(n * n, 1);
    let (a, b, c) = (x.clone(), x.clone(), x.clone());
    // The first rows of the result need two more rows of the image.
    let some = (CHECKED / (25 * n)).clamp(5, n.max(5)).min(n);
    let front = if some == n { n } else { some - 2 } * n;
    let check = within::<f32, f64>(move || {
        let part = &a[..some * n];
        let (mut want, mut bounds) = (reference::filter2d(&op(some), part), reference::filter2d_bound(&op(some), part));
        want.truncate(front);
        bounds.truncate(front);
        Ok((want, bounds))
    });
    let size = format!("{n}x{n} 5x5");
    let problem = Problem::new::<f32, _, _>(op(n), size, with_output::<f32>(&[x], n * n), check)?;
    Ok(problem
        .processor(Processor::Reference, n * n, move |y| assign(y, narrow(&reference::filter2d(&op(n), &b))))
        .processor(Processor::Loops, n * n, move |y| loops::filter2d(n, &weights(25), &c, y)))
}

const CHANNELS: usize = 64;
const IMAGES: usize = 8;

fn layer(images: usize, side: usize) -> Conv2d {
    Conv2d::new([images, CHANNELS, side, side], CHANNELS, [3, 3]).pad([1, 1])
}

/// A layer on x and w with `bits` bits, without runners. Sums may err by `slack` times their bound.
fn conv<T: Number>(side: usize, bits: u32, slack: f64) -> Result<(Problem, [Rc<Vec<T>>; 2])> {
    let image = CHANNELS * side * side;
    let x = numbers::<T>(IMAGES * image, 1, bits);
    let w = numbers::<T>(CHANNELS * CHANNELS * 9, 2, bits);
    let wide = |x: &[T]| x.iter().map(|x| x.to_f64() as f32).collect::<Vec<f32>>();
    // Images and filters are independent.
    let filters = (CHECKED / (8 * image)).clamp(1, CHANNELS);
    let (x1, w1) = (wide(&x[..image]), wide(&w[..filters * CHANNELS * 9]));
    let check = within::<T, f32>(move || {
        let one = Conv2d::new([1, CHANNELS, side, side], filters, [3, 3]).pad([1, 1]);
        let want = reference::conv(&one, &x1, &w1, None)?;
        let bounds = reference::conv_bound(&one, &x1, &w1, None)?;
        let rounding = |x: f32| if T::DTYPE.size() == 2 { f64::from(x.abs()) / 1024.0 } else { 0.0 };
        let bounds = bounds.iter().zip(&want).map(|(b, x)| slack * b + rounding(*x)).collect();
        Ok((want, bounds))
    });
    let Cost { flop, bytes } = Op::<f32>::lower(&layer(IMAGES, side), &DeviceProfile::h100())?.cost;
    let cost = Cost { flop, bytes: bytes * size_of::<T>() as f64 / 4.0 };
    let size = format!("{IMAGES}x{CHANNELS}x{side}x{side} 3x3 {CHANNELS}");
    let operands = with_output::<T>(&[x.clone(), w.clone()], IMAGES * image);
    Ok((Problem::of(cost, size, operands, check), [x, w]))
}

fn conv_f32(side: usize) -> Result<Problem> {
    let (problem, [x, w]) = conv::<f32>(side, 24, 1.0)?;
    let problem = problem.wgpu(move |gpu| Ok(layer(IMAGES, side).plan::<f32>(gpu)?.into_executable()));
    #[cfg(feature = "cuda")]
    let problem = problem.cuda::<f32>(layer(IMAGES, side));
    Ok(problem.processor(Processor::Reference, x.len(), move |y| {
        assign(y, reference::conv(&layer(IMAGES, side), &x, &w, None)?)
    }))
}

#[cfg(feature = "cuda")]
fn conv_tensor(side: usize) -> Result<Problem> {
    let (problem, _) = conv::<f32>(side, 11, CUT_OFF)?;
    Ok(problem.cuda::<f32>(layer(IMAGES, side).precision(Precision::Tensor)))
}

#[cfg(feature = "cuda")]
fn conv_split(side: usize) -> Result<Problem> {
    let (problem, _) = conv::<f32>(side, 24, CUT_OFF)?;
    Ok(problem.cuda::<f32>(layer(IMAGES, side).precision(Precision::Split)))
}

#[cfg(feature = "cuda")]
fn conv_f16(side: usize) -> Result<Problem> {
    let (problem, _) = conv::<f16>(side, 11, CUT_OFF)?;
    Ok(problem.cuda::<f16>(layer(IMAGES, side)))
}

const HEADS: usize = 8;
const WIDTH: usize = 64;

fn attention_f16(t: usize) -> Result<Problem> {
    let problem = attention::<f16>(t)?;
    #[cfg(feature = "cuda")]
    let problem = problem.cuda::<f16>(Attention::new([1, HEADS, t, WIDTH], [HEADS, t]));
    Ok(problem)
}

fn attention<T: Number + Into<f64>>(t: usize) -> Result<Problem>
where
    Attention: Op<T>,
{
    let op = Attention::new([1, HEADS, t, WIDTH], [HEADS, t]);
    let [q, k, v] = [1, 2, 3].map(|seed| noise::<T>(HEADS * t * WIDTH, seed));
    let (q1, k1, v1, q2, k2, v2) = (q.clone(), k.clone(), v.clone(), q.clone(), k.clone(), v.clone());
    // Check only the first queries of the first head.
    let some = (CHECKED / (4 * t * WIDTH)).clamp(1, t);
    let check = within::<T, T>(move || {
        let (one, inputs) = (Attention::new([1, 1, some, WIDTH], [1, t]), AttentionInputs::default());
        let (q, k, v) = (&q1[..some * WIDTH], &k1[..t * WIDTH], &v1[..t * WIDTH]);
        let want = reference::attention(&one, q, k, v, inputs);
        let mut bound = reference::attention_bound(&one, q, k, v, inputs);
        if T::DTYPE == f16::DTYPE {
            // Tensor cores round weights to f16 and truncate sums.
            let sizes: Vec<T> = v.iter().map(|x| T::from_f64((*x).into().abs())).collect();
            let sizes = reference::attention(&one, q, k, &sizes, inputs);
            bound.iter_mut().zip(sizes).for_each(|(bound, size)| *bound = 4.0 * *bound + size.into() / 1000.0);
        }
        Ok((want, bound))
    });
    let len = HEADS * t * WIDTH;
    let size = format!("B1 H{HEADS} T{t} D{WIDTH}");
    let operands = with_output::<T>(&[q, k, v], len);
    let problem = Problem::new::<T, _, _>(op.clone(), size, operands, check)?;
    Ok(problem.processor(Processor::Reference, len, move |y: &mut Vec<T>| {
        assign(y, reference::attention(&op, &q2, &k2, &v2, AttentionInputs::default()))
    }))
}

fn spmv(n: usize) -> Result<Problem> {
    let csr: Rc<Csr> = Rc::new(sparse_matrix(n, &noise::<f32>(4099, 1)));
    let x = noise::<f32>(n, 2);
    let want = owning!(csr, x => move || reference::spmv(1.0, &csr, &x, 0.0, &vec![0.0; n]));
    let bound = owning!(csr, x => move || reference::spmv_bound(1.0, &csr, &x, 0.0, &vec![0.0; n]));
    let size = format!("{n} rows, {} entries", csr.entries());
    let op = Spmv::new(csr.layout()?);
    let matrix: [Rc<dyn Array>; 3] =
        [Rc::new(csr.row_ptrs.clone()), Rc::new(csr.col_idxs.clone()), Rc::new(csr.values.clone())];
    let inputs: Vec<_> = matrix.into_iter().chain([x.clone() as Rc<dyn Array>]).collect();
    let problem = referenced(op, size, inputs, n, want, bound)?;
    Ok(problem.processor(Processor::Loops, n, move |y| loops::spmv(&csr, &x, y)))
}
