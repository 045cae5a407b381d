//! Prefix sums and selections.

use super::array::{Array, from_front};
use super::elementwise::{elements, numbers, run};
use super::{Call, Stop};
use crate::support::onnx::TensorData;
use tilework::DType;
use tilework::elementwise::ZipFn;
use tilework::prelude::*;
use tilework::primitives::{Operator, Reducer};
use tilework::reference::{Number, scan_bound};

/// Along the axis in operand 1, which is moved last.
pub(super) fn cum_sum(call: &Call) -> Result<Array, Stop> {
    let (dtype, x) = match call.input(0) {
        // Most cases are of f64; their elements are small integers.
        Some(tensor) if matches!(tensor.data, TensorData::F64(_)) => {
            let values = super::numbers(&tensor.data);
            if values.iter().any(|&x| f64::from(x as f32) != x) {
                return Err(Stop::out_of_scope("tilework has no such element type", "f64"));
            }
            (DType::F32, Array::exact(tensor.dims.clone(), values))
        }
        _ => call.operand(0)?,
    };
    let axis = call.input(1).map(|tensor| super::numbers(&tensor.data)).unwrap_or_default();
    let axis = from_front(axis.first().copied().unwrap_or(0.0) as i64, x.dims.len());
    let (rows, back) = x.axis_last(axis);
    let sums = by_type!(dtype, [f32, i32, u32], "scan does not take", T => scan_rows::<T>(call, &rows, x.dims[axis]));
    Ok(sums?.permuted(&back))
}

fn scan_rows<T: Number>(call: &Call, x: &Array, n: usize) -> Result<Array, Stop>
where
    Sum: Reducer<T, Output = T>,
{
    let (exclusive, reverse) = (call.int("exclusive", 0) != 0, call.int("reverse", 0) != 0);
    let input = elements::<T>(x);
    let rows = input.len() / n.max(1);
    let scan = Scan::rows(Sum, rows, n).when(exclusive, |op| op.exclusive()).when(reverse, |op| op.reverse());
    let sums: Vec<T> = run(call.gpu, &scan, &input, input.len())?;
    let bound = scan_bound(&Operator::Sum, rows, n, exclusive, reverse, &input);
    Ok(Array { dims: x.dims.clone(), values: numbers(&sums), bound })
}

/// The elements whose flag is set, if f32 holds them exactly.
fn selected(gpu: &Gpu, x: &[f64], flags: &[u32]) -> Result<Vec<f64>, Stop> {
    let input: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let plan = Select::new(x.len()).plan::<f32>(gpu)?;
    let (dx, df, dy) = (gpu.upload(&input)?, gpu.upload(flags)?, gpu.alloc::<f32>(x.len())?);
    let count = gpu.alloc::<u32>(1)?;
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &dx, &df, &dy, &count)?;
    rec.submit()?;
    Ok(numbers(&dy.slice(..count.read()?[0] as usize)?.read()?))
}

/// The slices along an axis whose condition holds: each element has the flag of its slice. Missing conditions are
/// false.
pub(super) fn compress(call: &Call) -> Result<Array, Stop> {
    let (dtype, x) = call.operand(0)?;
    if dtype != DType::F32 {
        return Err(Stop::out_of_scope("tested with f32, not with", dtype));
    }
    let holds = call.input(1).map(|tensor| super::numbers(&tensor.data)).unwrap_or_default();
    let flag = |i: usize| u32::from(holds.get(i).is_some_and(|x| *x != 0.0));
    let Some(axis) = call.node.attribute("axis").map(|_| from_front(call.int("axis", 0), x.dims.len())) else {
        let flags: Vec<u32> = (0..x.values.len()).map(flag).collect();
        let kept = selected(call.gpu, &x.values, &flags)?;
        return Ok(Array::exact(vec![kept.len()], kept));
    };
    let (extent, inner) = (x.dims[axis], x.dims[axis + 1..].iter().product::<usize>());
    let flags: Vec<u32> = (0..x.values.len()).map(|i| flag(i / inner % extent)).collect();
    let mut dims = x.dims.clone();
    dims[axis] = (0..extent).map(|i| flag(i) as usize).sum();
    Ok(Array::exact(dims, selected(call.gpu, &x.values, &flags)?))
}

/// The coordinates of nonzero elements, one row per axis.
pub(super) fn non_zero(call: &Call) -> Result<Array, Stop> {
    let tensor = call.input(0).ok_or_else(|| Stop::Failed("operand 0 is missing".into()))?;
    let TensorData::Bool(set) = &tensor.data else {
        return Err(Stop::out_of_scope("tested with bool, not with", tensor.data.type_name()));
    };
    let flags: Vec<u32> = set.iter().map(|&x| u32::from(x)).collect();
    let mut values = Vec::new();
    for axis in 0..tensor.dims.len() {
        let (extent, inner) = (tensor.dims[axis], tensor.dims[axis + 1..].iter().product::<usize>());
        let coordinates: Vec<f64> = (0..flags.len()).map(|i| (i / inner % extent) as f64).collect();
        values.extend(selected(call.gpu, &coordinates, &flags)?);
    }
    let rank = tensor.dims.len();
    Ok(Array::exact(vec![rank, values.len() / rank.max(1)], values))
}

/// Distinct elements, their first positions, the index of each element among them, and their counts.
pub(super) fn unique(call: &Call) -> Result<Vec<Array>, Stop> {
    let (dtype, x) = call.operand(0)?;
    if call.node.attribute("axis").is_some() {
        return Err(Stop::out_of_scope("unique compares elements, not slices", "with an axis"));
    }
    if dtype != DType::F32 {
        return Err(Stop::out_of_scope("tested with f32, not with", dtype));
    }
    let (gpu, n) = (call.gpu, x.values.len());
    let positions: Vec<u32> = (0..n as u32).collect();
    // Equal elements become adjacent, in order.
    let (keys, places) = gpu.sort_pairs(&gpu.upload(&elements::<f32>(&x))?, &gpu.upload(&positions)?)?;
    let by_key = ReduceByKey::new(Min, n).with_keys::<f32>().plan::<u32>(gpu)?;
    let (values, firsts, count) = (gpu.alloc::<f32>(n)?, gpu.alloc::<u32>(n)?, gpu.alloc::<u32>(1)?);
    let (again, lengths, runs) = (gpu.alloc::<f32>(n)?, gpu.alloc::<u32>(n)?, gpu.alloc::<u32>(1)?);
    let run_length = RunLength::new(n).plan::<f32>(gpu)?;
    let mut rec = gpu.recorder();
    by_key.record(&mut rec, &keys, &places, &values, &firsts, &count)?;
    run_length.record(&mut rec, &keys, &again, &lengths, &runs)?;
    rec.submit()?;
    let different = count.read()?[0] as usize;
    let (values, firsts) = (values.slice(..different)?.read()?, firsts.slice(..different)?.read()?);
    let lengths = lengths.slice(..different)?.read()?;
    // The number of its run is written to the original position of each element.
    let sorted = keys.read()?;
    let before = [&sorted[..1], &sorted[..n - 1]].concat();
    let differs = ZipFn::custom("fn zip(x: T, y: T) -> T { return select(0.0, 1.0, x != y); }");
    let heads = gpu.zip(&keys, &gpu.upload(&before)?, differs)?;
    let numbered: Vec<u32> = gpu.inclusive_scan(&heads, Sum)?.read()?.iter().map(|x| *x as u32).collect();
    let mut inverse = gpu.sort_pairs(&places, &gpu.upload(&numbered)?)?.1.read()?;
    // In the order of their first positions, unless sorted values are requested.
    let mut order: Vec<u32> = (0..different as u32).collect();
    if call.int("sorted", 1) == 0 {
        order = gpu.sort_pairs(&gpu.upload(&firsts)?, &gpu.upload(&order)?)?.1.read()?;
        let ranks = gpu.sort_pairs(&gpu.upload(&order)?, &gpu.upload(&positions[..different])?)?.1.read()?;
        inverse = inverse.iter().map(|&run| ranks[run as usize]).collect();
    }
    let take = |from: &[f64]| Array::exact(vec![different], order.iter().map(|&i| from[i as usize]).collect());
    let inverse = Array::exact(vec![n], numbers(&inverse));
    Ok(vec![take(&numbers(&values)), take(&numbers(&firsts)), inverse, take(&numbers(&lengths))])
}
