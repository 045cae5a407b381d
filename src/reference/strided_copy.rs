use super::prelude::*;
use crate::dense::StridedCopy;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/strided_copy.rs"]
mod tests;
