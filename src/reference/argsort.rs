//! The order of keys.

use super::judge::{Wanted, by_input, input, output_shape, settings, there};
use super::sort::bits_asked;
use super::sort_positions;
use crate::error::Result;
use crate::program::OpCall;

pub(super) fn judge(form: &OpCall) -> Result<Vec<Wanted>> {
    let (descending, bits) = (settings(form)?.has("descending"), bits_asked(form)?);
    by_input!(form, 0, [f32, i32, u32], T => {
        let keys = input::<T>(form, 0)?;
        let places = sort_positions(&keys[..there(form, keys.len())?], descending, bits);
        let places = places.into_iter().map(|i| i as u32).collect::<Vec<_>>();
        Ok(vec![Wanted::exact(&output_shape(call, 0), places)?])
    })
}
