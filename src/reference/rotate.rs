use super::prelude::*;
use crate::primitives::Rotate;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let x = input::<T>(call, 0)?;
        let x = &x[..there(call, x.len())?];
        let by = descriptor::<Rotate>(call)?.places(x.len());
        Ok(vec![Wanted::exact(&output_shape(call, 0), rotate(by as i64, x))?])
    })
}

/// Returns the elements rotated to the left by any number of places.
pub fn rotate<T: Copy>(by: i64, input: &[T]) -> Vec<T> {
    let n = input.len() as i128;
    let from = |i: i128| input[(i + i128::from(by)).rem_euclid(n) as usize];
    (0..n).map(from).collect()
}

#[cfg(test)]
#[path = "tests/rotate.rs"]
mod tests;
