use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let x = input::<T>(call, 0)?;
        Ok(vec![Wanted::exact(&output_shape(call, 0), reverse(&x[..there(call, x.len())?]))?])
    })
}

/// Returns the elements from the last to the first.
pub fn reverse<T: Copy>(input: &[T]) -> Vec<T> {
    input.iter().rev().copied().collect()
}
