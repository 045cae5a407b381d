use super::prelude::*;
use crate::dense::{Concatenate, PadAxes, PadMode, PermuteAxes, StridedCopy};

judges! {
    transpose => judge_transpose, permute_axes => judge_permute_axes, strided_copy => judge_strided_copy,
    pad_axes => judge_pad_axes, concatenate => judge_concatenate
}

fn judge_transpose(call: &OpCall) -> Result<Vec<Wanted>> {
    let shape = output_shape(call, 0);
    let [.., n, m] = shape[..] else {
        return Err(err!(Shape, "reference transpose: the output needs at least two axes"));
    };
    let batch = shape[..shape.len() - 2].iter().product();
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        Ok(vec![Wanted::exact(&shape, transpose(batch, m, n, input::<T>(call, 0)?))?])
    })
}

/// Transposes each of `batch` matrices of m x n in `input`.
pub fn transpose<T: Element>(batch: usize, m: usize, n: usize, input: &[T]) -> Vec<T> {
    let mut output = Vec::with_capacity(batch * m * n);
    for b in 0..batch {
        for j in 0..n {
            for i in 0..m {
                output.push(input[(b * m + i) * n + j]);
            }
        }
    }
    output
}

fn judge_permute_axes(call: &OpCall) -> Result<Vec<Wanted>> {
    let (shape, axes) = descriptor::<PermuteAxes>(call)?.parts();
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        Ok(vec![Wanted::exact(&output_shape(call, 0), permute_axes(shape, axes, input::<T>(call, 0)?))?])
    })
}

/// Returns the elements in row-major order of the axes of the output, each by its indices in the input.
pub fn permute_axes<T: Copy>(shape: &[usize], axes: &[usize], input: &[T]) -> Vec<T> {
    let stride = |axis: usize| shape[axis + 1..].iter().product::<usize>();
    let from = |i: usize| {
        let (mut rest, mut at) = (i, 0);
        for &axis in axes.iter().rev() {
            at += rest % shape[axis] * stride(axis);
            rest /= shape[axis];
        }
        input[at]
    };
    (0..input.len()).map(from).collect()
}

fn judge_strided_copy(call: &OpCall) -> Result<Vec<Wanted>> {
    let (shape, strides, origin) = descriptor::<StridedCopy>(call)?.parts();
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        Ok(vec![Wanted::exact(&output_shape(call, 0), strided_copy(shape, strides, origin, input::<T>(call, 0)?))?])
    })
}

/// Returns the elements in row-major order of the output. All must lie in the input.
pub fn strided_copy<T: Copy>(shape: &[usize], strides: &[isize], origin: usize, input: &[T]) -> Vec<T> {
    let from = |i: usize| {
        let (mut rest, mut at) = (i, origin as isize);
        for (extent, stride) in shape.iter().zip(strides).rev() {
            at += (rest % extent) as isize * stride;
            rest /= extent;
        }
        input[at as usize]
    };
    (0..shape.iter().product()).map(from).collect()
}

fn judge_pad_axes(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<PadAxes>(call)?;
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        Ok(vec![Wanted::exact(&op.output()?, pad_axes(op, input::<T>(call, 0)?)?)?])
    })
}

/// Returns the elements in row-major order.
pub fn pad_axes<T: Number>(op: &PadAxes, input: &[T]) -> Result<Vec<T>> {
    let ((shape, added, mode), output) = (op.parts(), op.output()?);
    let constant = if let PadMode::Constant(x) = mode { x } else { 0.0 };
    // Integers are cut to the range of the type.
    let constant = if T::DTYPE.is_float() { T::from_f64(constant) } else { cut(constant) };
    let from = |i: usize| {
        let (mut rest, mut at, mut stride) = (i, 0, 1);
        for axis in (0..shape.len()).rev() {
            let here = (rest % output[axis]) as i64 - added[axis][0] as i64;
            let n = shape[axis] as i64;
            let here = match mode {
                PadMode::Constant(_) if !(0..n).contains(&here) => return constant,
                PadMode::Constant(_) => here,
                PadMode::Edge => here.clamp(0, n - 1),
                PadMode::Wrap => here.rem_euclid(n),
                PadMode::Reflect => {
                    let turned = here.rem_euclid((2 * n - 2).max(1));
                    turned.min(2 * n - 2 - turned).max(0)
                }
            };
            at += here as usize * stride;
            stride *= shape[axis];
            rest /= output[axis];
        }
        input[at]
    };
    Ok((0..output.iter().product()).map(from).collect())
}

/// The nearest integer of the type towards 0.
fn cut<T: Number>(x: f64) -> T {
    let [low, high] = match T::DTYPE {
        crate::DType::I32 => [f64::from(i32::MIN), f64::from(i32::MAX)],
        crate::DType::U32 => [0.0, f64::from(u32::MAX)],
        crate::DType::U8 => [0.0, 255.0],
        _ => [-128.0, 127.0],
    };
    T::from_f64(if x.is_nan() { 0.0 } else { x.trunc().clamp(low, high) })
}

fn judge_concatenate(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Concatenate>(call)?;
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let arrays = (0..op.parts().0.len()).map(|k| input::<T>(call, k)).collect::<Result<Vec<_>>>()?;
        Ok(vec![Wanted::exact(&op.output()?, concatenate(op, &arrays))?])
    })
}

/// Returns the elements in row-major order.
pub fn concatenate<T: Copy>(op: &Concatenate, arrays: &[&[T]]) -> Vec<T> {
    let (shapes, axis) = op.parts();
    let outer: usize = shapes[0][..axis].iter().product();
    let row = |k: usize| shapes[k][axis..].iter().product::<usize>();
    let rows = (0..outer).flat_map(|i| (0..arrays.len()).map(move |k| (i, k)));
    rows.flat_map(|(i, k)| &arrays[k][i * row(k)..(i + 1) * row(k)]).copied().collect()
}

#[cfg(test)]
#[path = "tests/axes.rs"]
mod tests;
