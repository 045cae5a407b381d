use super::prelude::*;
use crate::dense::PermuteAxes;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/permute_axes.rs"]
mod tests;
