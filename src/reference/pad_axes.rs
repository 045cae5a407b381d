use super::prelude::*;
use crate::dense::{PadAxes, PadMode};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/pad_axes.rs"]
mod tests;
