//! The order of keys.

use super::judge::{Wanted, by_input, input, output_shape, settings};
use super::sort::bits_asked;
use super::sort_positions;
use crate::error::Result;
use crate::program::Form;
use half::f16;

pub(super) fn judge(form: &Form) -> Result<Vec<Wanted>> {
    let (descending, bits) = (settings(form)?.has("descending"), bits_asked(form)?);
    by_input!(form, 0, [f32, i32, u32, f16, u8, i8], T => {
        let places = sort_positions(input::<T>(form, 0)?, descending, bits);
        let places = places.into_iter().map(|i| i as u32).collect::<Vec<_>>();
        Ok(vec![Wanted::exact(&output_shape(form, 0), places)?])
    })
}
