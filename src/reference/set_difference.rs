//! The elements of a sorted array that another lacks.

use super::Number;
use super::judge::{Wanted, by_input, input};
use super::set_intersection::has_partner;
use crate::error::Result;
use crate::program::OpCall;
use half::f16;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let lacked = set_difference(input::<T>(call, 0)?, input::<T>(call, 1)?);
        Ok(vec![Wanted::exact(&[lacked.len()], lacked)?])
    })
}

/// Returns the elements of `a` that [`set_intersection`](super::set_intersection) drops, in order.
pub fn set_difference<T: Number>(a: &[T], b: &[T]) -> Vec<T> {
    (0..a.len()).filter(|&i| !has_partner(a, i, b)).map(|i| a[i]).collect()
}
