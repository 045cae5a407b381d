use super::prelude::*;
use super::sort::bits_asked;
use super::sort_positions;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (descending, bits) = (settings(call)?.has("descending"), bits_asked(call)?);
    by_input!(call, 0, [f32, i32, u32, f16, u8, i8], T => {
        let keys = input::<T>(call, 0)?;
        let places = sort_positions(&keys[..there(call, keys.len())?], descending, bits);
        let places = places.into_iter().map(|i| i as u32).collect::<Vec<_>>();
        Ok(vec![Wanted::exact(&output_shape(call, 0), places)?])
    })
}
