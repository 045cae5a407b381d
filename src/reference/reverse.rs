//! Elements in reverse order.

use super::judge::{Wanted, by_input, input, output_shape};
use crate::error::Result;
use crate::program::Form;
use half::f16;

pub(super) fn judge(form: &Form) -> Result<Vec<Wanted>> {
    by_input!(form, 0, [f32, f16, i32, u32, u8, i8], T => {
        Ok(vec![Wanted::exact(&output_shape(form, 0), reverse(input::<T>(form, 0)?))?])
    })
}

/// Returns the elements from the last to the first.
pub fn reverse<T: Copy>(input: &[T]) -> Vec<T> {
    input.iter().rev().copied().collect()
}
