//! Reductions along any axes: the reduced axes are moved last, where they form a row.

use super::array::Array;
use super::elementwise::{self, Function, apply, elements, numbers, run, scale};
use super::{Call, Stop};
use half::f16;
use tilework::DType;
use tilework::prelude::*;
use tilework::primitives::Reducer;
use tilework::reference::{Number, reduce_bound};

/// The operand as `rows` rows of `n` elements.
struct Rows {
    dtype: DType,
    x: Array,
    rows: usize,
    n: usize,
    /// Shape of the result.
    dims: Vec<usize>,
}

impl Rows {
    fn new(call: &Call, axes: &[i64]) -> Result<Self, Stop> {
        let (dtype, x) = call.operand(0)?;
        let rank = x.dims.len();
        let reduced = |axis: &usize| axes.iter().any(|&a| a == *axis as i64 || a + rank as i64 == *axis as i64);
        let (last, first): (Vec<_>, Vec<_>) = (0..rank).partition(reduced);
        let extent = |axes: &[usize]| axes.iter().map(|&axis| x.dims[axis]).product();
        let dims = if call.int("keepdims", 1) != 0 {
            (0..rank).map(|axis| if reduced(&axis) { 1 } else { x.dims[axis] }).collect()
        } else {
            first.iter().map(|&axis| x.dims[axis]).collect()
        };
        let (rows, n) = (extent(&first), extent(&last));
        Ok(Self { dtype, x: x.permuted(&[first, last].concat()), rows, n, dims })
    }

    /// For operators with several axes: by default all of them, or none.
    fn of(call: &Call) -> Result<Self, Stop> {
        let axes = call.ints(1, "axes");
        if axes.is_empty() && call.int("noop_with_empty_axes", 0) == 0 {
            let rank = call.operand(0)?.1.dims.len() as i64;
            return Self::new(call, &(0..rank).collect::<Vec<_>>());
        }
        Self::new(call, &axes)
    }
}

/// Reduces each row of `x`, which has the shape of `rows`.
fn reduce<T: Number, O: Reducer<T>>(gpu: &Gpu, op: O, rows: &Rows, x: &Array) -> Result<Array, Stop>
where
    O::Output: Number,
{
    let operator = op.operator();
    let input = elements::<T>(x);
    let values: Vec<O::Output> = run(gpu, &Reduce::rows(op, rows.rows, rows.n), &input, rows.rows)?;
    let values = numbers(&values);
    let mut bound = reduce_bound(&operator, rows.rows, rows.n, &input);
    for (row, bound) in bound.iter_mut().enumerate() {
        *bound += x.bound[row * rows.n..][..rows.n].iter().sum::<f64>();
    }
    Ok(Array { dims: rows.dims.clone(), values, bound })
}

/// Sums and products; those of bytes would be wider than bytes, which ONNX does not expect.
fn accumulate<O>(call: &Call, op: O) -> Result<Array, Stop>
where
    O: Reducer<f32, Output = f32> + Reducer<f16, Output = f16>,
    O: Reducer<i32, Output = i32> + Reducer<u32, Output = u32>,
{
    let rows = Rows::of(call)?;
    let why = "reduce has no sum of type";
    by_type!(rows.dtype, [f32, f16, i32, u32], why, T => reduce::<T, O>(call.gpu, op, &rows, &rows.x))
}

/// Extremes and their positions.
fn choose<O>(call: &Call, op: O, rows: &Rows) -> Result<Array, Stop>
where
    O: Reducer<f32, Output: Number> + Reducer<f16, Output: Number> + Reducer<i32, Output: Number>,
    O: Reducer<u32, Output: Number> + Reducer<u8, Output: Number> + Reducer<i8, Output: Number>,
{
    if rows.n == 0 && rows.rows > 0 {
        return Err(Stop::out_of_scope("reduce refuses extremes of nothing", "empty set"));
    }
    by_type!(rows.dtype, [f32, f16, i32, u32, u8, i8], "reduce does not take", T => {
        reduce::<T, O>(call.gpu, op, rows, &rows.x)
    })
}

fn position<O>(call: &Call, op: O) -> Result<Array, Stop>
where
    O: Reducer<f32, Output = u32> + Reducer<f16, Output = u32> + Reducer<i32, Output = u32>,
    O: Reducer<u32, Output = u32> + Reducer<u8, Output = u32> + Reducer<i8, Output = u32>,
{
    let rows = Rows::new(call, &[call.int("axis", 0)])?;
    if call.int("select_last_index", 0) != 0 {
        return Err(Stop::out_of_scope("reduce gives the first position", "select_last_index"));
    }
    choose(call, op, &rows)
}

pub(super) fn sum(call: &Call) -> Result<Array, Stop> {
    accumulate(call, Sum)
}

pub(super) fn prod(call: &Call) -> Result<Array, Stop> {
    accumulate(call, Prod)
}

pub(super) fn min(call: &Call) -> Result<Array, Stop> {
    choose(call, Min, &Rows::of(call)?)
}

pub(super) fn max(call: &Call) -> Result<Array, Stop> {
    choose(call, Max, &Rows::of(call)?)
}

pub(super) fn arg_min(call: &Call) -> Result<Array, Stop> {
    position(call, ArgMin)
}

pub(super) fn arg_max(call: &Call) -> Result<Array, Stop> {
    position(call, ArgMax)
}

/// A function of each element, a sum, and a function of the result.
fn composed(call: &Call, before: Option<Function>, after: Option<Function>) -> Result<Array, Stop> {
    let rows = Rows::of(call)?;
    let why = "composed of functions of floats, not of";
    by_type!(rows.dtype, [f32, f16], why, T => composed_as::<T>(call.gpu, &rows, before, after))
}

fn composed_as<T: Number>(
    gpu: &Gpu, rows: &Rows, before: Option<Function>, after: Option<Function>,
) -> Result<Array, Stop>
where
    Sum: Reducer<T, Output = T>,
{
    let mapped = before.map(|f| apply::<T>(gpu, &f, &rows.x)).transpose()?;
    let sums = reduce::<T, Sum>(gpu, Sum, rows, mapped.as_ref().unwrap_or(&rows.x))?;
    match after {
        Some(f) => apply::<T>(gpu, &f, &sums),
        None => Ok(sums),
    }
}

pub(super) fn l1(call: &Call) -> Result<Array, Stop> {
    composed(call, Some(elementwise::abs()), None)
}

pub(super) fn l2(call: &Call) -> Result<Array, Stop> {
    composed(call, Some(elementwise::square()), Some(elementwise::sqrt()))
}

pub(super) fn sum_square(call: &Call) -> Result<Array, Stop> {
    composed(call, Some(elementwise::square()), None)
}

pub(super) fn log_sum(call: &Call) -> Result<Array, Stop> {
    composed(call, None, Some(elementwise::log()))
}

/// By the definition, without subtracting the maximum, which would avoid overflow.
pub(super) fn log_sum_exp(call: &Call) -> Result<Array, Stop> {
    composed(call, Some(elementwise::exp()), Some(elementwise::log()))
}

pub(super) fn mean(call: &Call) -> Result<Array, Stop> {
    let rows = Rows::of(call)?;
    let share = 1.0 / rows.n as f64;
    by_type!(rows.dtype, [f32, f16], "integers have no mean", T => {
        scale::<T>(call.gpu, share, &reduce::<T, Sum>(call.gpu, Sum, &rows, &rows.x)?)
    })
}
