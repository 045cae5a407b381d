use super::lower_bound::{bisect, searched};
use super::prelude::*;
use std::cmp::Ordering;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let [sorted, needles] = searched::<T>(call)?;
        let places = upper_bound(sorted, needles);
        Ok(vec![Wanted::exact(&output_shape(call, 0), places)?])
    })
}

/// Returns for each needle the number of sorted elements that are at most the needle.
pub fn upper_bound<T: Number>(sorted: &[T], needles: &[T]) -> Vec<u32> {
    bisect(sorted, needles, Ordering::is_le)
}
