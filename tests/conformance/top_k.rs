//! Top-k along any axis: the axis is moved last, and each row is one call.

use super::array::{Array, from_front};
use super::elementwise::{elements, numbers};
use super::{Call, Stop};
use tilework::prelude::*;
use tilework::reference::Number;

/// Values and indices.
pub(super) fn top_k(call: &Call) -> Result<Vec<Array>, Stop> {
    let (dtype, x) = call.operand(0)?;
    // Old operator sets give it as an attribute.
    let k = call.ints(1, "k").first().map_or(call.int("k", 0), |k| *k) as usize;
    let (rows, back) = x.axis_last(from_front(call.int("axis", -1), x.dims.len()));
    let smallest = call.int("largest", 1) == 0;
    let (values, indices) = by_type!(dtype, [f32, i32, u32], "top-k does not take", T => {
        best_of_rows::<T>(call.gpu, &rows, k, smallest)
    })?;
    let mut dims = rows.dims;
    if let Some(last) = dims.last_mut() {
        *last = k;
    }
    let in_place = |values| Array::exact(dims.clone(), values).permuted(&back);
    Ok(vec![in_place(values), in_place(indices)])
}

fn best_of_rows<T: Number>(gpu: &Gpu, rows: &Array, k: usize, smallest: bool) -> Result<(Vec<f64>, Vec<f64>), Stop> {
    let n = rows.dims.last().copied().unwrap_or(1);
    let plan = TopK::new(n, k).when(smallest, |op| op.smallest()).plan::<T>(gpu)?;
    let (values, indices) = (gpu.alloc::<T>(k)?, gpu.alloc::<u32>(k)?);
    let mut all = (Vec::new(), Vec::new());
    for row in elements::<T>(rows).chunks(n) {
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &gpu.upload(row)?, &values, &indices)?;
        rec.submit()?;
        all.0.extend(numbers(&values.read()?));
        all.1.extend(numbers(&indices.read()?));
    }
    Ok(all)
}
