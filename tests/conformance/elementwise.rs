//! Elementwise functions of one or several tensors.

use super::array::{Array, broadcast_dims};
use super::{Call, Stop};
use crate::support::onnx::Attribute;
use half::f16;
use tilework::elementwise::{Axpy, Map, MapFn, Zip, ZipFn};
use tilework::gpu::Slice;
use tilework::program::Op;
use tilework::reference::{self, Number};
use tilework::{Activation, DType, Element, Gpu, Plannable};

/// The largest step from one f32 to the next, relative to the number.
const ULP: f64 = f32::EPSILON as f64;

/// A function of one element, on the device and exactly.
pub(super) struct Function {
    map: MapFn,
    exact: fn(f64) -> f64,
    /// The error bound of the device's y, in f32, given x and y.
    error: fn(f64, f64) -> f64,
}

pub(super) fn neg() -> Function {
    Function { map: MapFn::Neg, exact: |x| -x, error: |_, _| 0.0 }
}

pub(super) fn abs() -> Function {
    Function { map: MapFn::Abs, exact: f64::abs, error: |_, _| 0.0 }
}

pub(super) fn relu() -> Function {
    Function { map: MapFn::Relu, exact: |x| if x < 0.0 { 0.0 } else { x }, error: |_, _| 0.0 }
}

/// WGSL promises 3 + 2 |x| ULP.
fn exp_ulps(x: f64) -> f64 {
    3.0 + 2.0 * x.abs()
}

pub(super) fn exp() -> Function {
    Function { map: MapFn::Exp, exact: f64::exp, error: |x, y| exp_ulps(x) * ULP * y }
}

/// WGSL defines the root as the inverse (2.5 ULP) of the inverse root (2 ULP).
pub(super) fn sqrt() -> Function {
    Function { map: MapFn::Sqrt, exact: f64::sqrt, error: |_, y| 4.5 * ULP * y }
}

/// An exponential, a sum and a quotient.
pub(super) fn sigmoid() -> Function {
    let exact = |x: f64| 1.0 / (1.0 + (-x).exp());
    Function { map: MapFn::Sigmoid, exact, error: |x, y| (exp_ulps(x) + 3.0) * ULP * y }
}

/// From 0.625 on the kernel computes 1 - t with t = 2 / (e^2|x| + 1): an exponential, a sum, a quotient and
/// a difference. t falls faster than the error of e^2|x| grows, so 0.625 is the worst; the polynomial below
/// is better.
pub(super) fn tanh() -> Function {
    let error = |_: f64, y: f64| {
        let t = 1.0 - 0.625f64.tanh();
        ((exp_ulps(2.0 * 0.625) + 3.0) * t / 0.625f64.tanh() + 0.5) * ULP * y.abs()
    };
    Function { map: MapFn::Tanh, exact: f64::tanh, error }
}

/// The exact form: x plus a polynomial times an exponential.
pub(super) fn gelu() -> Function {
    let exact = |x: f64| reference::activate(Activation::Gelu, x);
    let error = |x: f64, y: f64| (y.abs() + (16.0 + x * x) * (x.max(0.0) - y).abs()) * ULP;
    Function { map: MapFn::Gelu, exact, error }
}

pub(super) fn sign() -> Function {
    Function { map: MapFn::Sign, exact: |x| if x == 0.0 { x } else { x.signum() }, error: |_, _| 0.0 }
}

pub(super) fn square() -> Function {
    let map = MapFn::custom("fn map(x: T) -> T { return x * x; }");
    Function { map, exact: |x| x * x, error: |_, y| 0.5 * ULP * y }
}

/// |x|^P by products.
pub(super) fn power<const P: i32>() -> Function {
    let text = format!("fn map(x: T) -> T {{ return abs(x){}; }}", " * abs(x)".repeat(P as usize - 1));
    let error = |_: f64, y: f64| f64::from(P) * ULP * y;
    Function { map: MapFn::custom(&text), exact: |x| x.abs().powi(P), error }
}

/// The root of degree P of a number not below 0. WGSL defines it as exp2(log2(x) / P): the logarithm errs by 2^-21
/// between 0.5 and 2 and by 3 ULP elsewhere, the exponential as e^x.
pub(super) fn root<const P: i32>() -> Function {
    let text = format!("fn map(x: T) -> T {{ return select(pow(x, 1.0 / {P}.0), 0.0, x == 0.0); }}");
    let error = |x: f64, y: f64| {
        if x == 0.0 {
            return 0.0;
        }
        let log = x.log2().abs();
        let of_log = if (0.5..=2.0).contains(&x) { 2f64.powi(-21) } else { 3.0 * ULP * log };
        let exponent = (of_log + 2.0 * ULP * log) / f64::from(P);
        (exp_ulps(log / f64::from(P)) * ULP + exponent) * y
    };
    Function { map: MapFn::custom(&text), exact: |x| x.powf(1.0 / f64::from(P)), error }
}

/// WGSL promises 2^-21 between 0.5 and 2, 3 ULP elsewhere, and nothing at 0, where ONNX expects minus
/// infinity.
pub(super) fn log() -> Function {
    let map = MapFn::custom(
        "fn map(x: T) -> T { return select(log(x), bitcast<T>(bitcast<u32>(x) | 0xff800000u), x == 0.0); }",
    );
    let error = |x: f64, y: f64| if (0.5..=2.0).contains(&x) { 2f64.powi(-21) } else { 3.0 * ULP * y.abs() };
    Function { map, exact: f64::ln, error }
}

/// The error of storing a result, in addition to that of f32: flushed subnormal numbers, and for f16
/// half a step.
fn stored<T: Number>(error: f64, y: f64) -> f64 {
    match T::DTYPE {
        _ if error == 0.0 => 0.0,
        DType::F32 => error + f64::from(f32::MIN_POSITIVE),
        DType::F16 => error + 2f64.powi(-11) * y.abs() + 2f64.powi(-25),
        _ => 0.0,
    }
}

pub(super) fn elements<T: Number>(x: &Array) -> Vec<T> {
    x.values.iter().map(|&x| T::from_f64(x)).collect()
}

pub(super) fn numbers<T: Number>(x: &[T]) -> Vec<f64> {
    x.iter().map(|x| x.to_f64()).collect()
}

/// Runs an op from one buffer to another.
pub(super) fn run<T: Element, R: Element>(gpu: &Gpu, op: &impl Op<T>, x: &[T], len: usize) -> Result<Vec<R>, Stop> {
    let (dx, dy) = (gpu.upload(x)?, gpu.alloc::<R>(len)?);
    let plan = op.plan::<T>(gpu)?.into_executable();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &[Slice::from(&dx).untyped(), Slice::from(&dy).untyped()])?;
    rec.submit()?;
    Ok(dy.read()?)
}

/// Applies the function to every element. An error of x changes y by at most the difference at the ends of its
/// interval: every function here is monotone within these errors.
pub(super) fn apply<T: Number>(gpu: &Gpu, function: &Function, x: &Array) -> Result<Array, Stop> {
    let input = elements::<T>(x);
    let map = Map::new(function.map.clone(), input.len());
    let values = numbers(&run::<T, T>(gpu, &map, &input, input.len())?);

    let f = function.exact;
    let bound = x.values.iter().zip(&x.bound).map(|(&x, &error)| {
        let shift = if error == 0.0 { 0.0 } else { (f(x + error) - f(x)).abs().max((f(x) - f(x - error)).abs()) };
        shift + stored::<T>((function.error)(x, f(x)), f(x))
    });
    Ok(Array { dims: x.dims.clone(), bound: bound.collect(), values })
}

/// Applies the function to two tensors of one shape.
fn combine<T: Number>(gpu: &Gpu, function: &ZipFn, x: &Array, y: &Array) -> Result<Array, Stop> {
    let (a, b) = (gpu.upload(&elements::<T>(x))?, gpu.upload(&elements::<T>(y))?);
    let output = gpu.alloc::<T>(a.len())?;
    let mut rec = gpu.recorder();
    Zip::new(function.clone(), a.len()).plan::<T>(gpu)?.record(&mut rec, &a, &b, &output)?;
    rec.submit()?;
    let values = numbers(&output.read()?);

    // Sums, minima and maxima propagate errors; products and quotients have exact operands here.
    let own = |z: f64| match function {
        ZipFn::Min | ZipFn::Max => 0.0,
        ZipFn::Div => stored::<T>(2.5 * ULP * z.abs(), z),
        _ => stored::<T>(0.5 * ULP * z.abs(), z),
    };
    let bound = (0..values.len()).map(|i| x.bound[i] + y.bound[i] + own(values[i]));
    Ok(Array { dims: x.dims.clone(), bound: bound.collect(), values })
}

/// `factor x`, as `factor x + 0`.
pub(super) fn scale<T: Number>(gpu: &Gpu, factor: f64, x: &Array) -> Result<Array, Stop> {
    let input = gpu.upload(&elements::<T>(x))?;
    let output = gpu.alloc_zeroed::<T>(input.len())?;
    let mut rec = gpu.recorder();
    Axpy::new(input.len(), factor).plan::<T>(gpu)?.record(&mut rec, &input, &output)?;
    rec.submit()?;
    let values = numbers(&output.read()?);
    // The factor is rounded too.
    let bound = (0..values.len()).map(|i| factor * x.bound[i] + stored::<T>(ULP * values[i].abs(), values[i]));
    Ok(Array { dims: x.dims.clone(), bound: bound.collect(), values })
}

/// GELU in its exact form.
pub(super) fn exact_gelu(call: &Call) -> Result<Array, Stop> {
    match call.node.attribute("approximate") {
        Some(Attribute::Str(name)) if name == "tanh" => {
            Err(Stop::out_of_scope("GELU is the exact form", "approximate = tanh"))
        }
        _ => map(call, &gelu()),
    }
}

/// Applies a function to one operand.
pub(super) fn map(call: &Call, function: &Function) -> Result<Array, Stop> {
    let (dtype, x) = call.operand(0)?;
    if !function.map.supports(dtype) {
        return Err(Stop::out_of_scope("map does not take", dtype));
    }
    by_type!(dtype, [f32, f16, i32], "map does not take", T => apply::<T>(call.gpu, function, &x))
}

/// Combines any number of operands from left to right.
pub(super) fn fold(call: &Call, function: &ZipFn) -> Result<Array, Stop> {
    let (dtype, operands) = call.operands()?;
    if operands.len() < 2 {
        return Err(Stop::out_of_scope("nothing to compute", "one operand"));
    }
    by_type!(dtype, [f32, f16, i32, u32], "zip does not take", T => fold_as::<T>(call.gpu, function, operands))
}

fn fold_as<T: Number>(gpu: &Gpu, function: &ZipFn, operands: Vec<Array>) -> Result<Array, Stop> {
    let combined = operands.into_iter().map(Ok).reduce(|x, y| {
        let (x, y) = (x?, y?);
        let dims = broadcast_dims(&x.dims, &y.dims)
            .ok_or_else(|| Stop::Failed(format!("{:?} and {:?} do not broadcast", x.dims, y.dims)))?;
        combine::<T>(gpu, function, &x.broadcast(&dims), &y.broadcast(&dims))
    });
    combined.unwrap_or_else(|| Err(Stop::Failed("no operands".into())))
}

pub(super) fn mean(call: &Call) -> Result<Array, Stop> {
    let (dtype, operands) = call.operands()?;
    let share = 1.0 / operands.len() as f64;
    by_type!(dtype, [f32, f16], "integers have no mean", T => {
        scale::<T>(call.gpu, share, &fold_as::<T>(call.gpu, &ZipFn::Add, operands)?)
    })
}
