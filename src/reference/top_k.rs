//! The best of all elements.

use super::judge::{Wanted, by_input, input, option, settings, there};
use super::sort_positions;
use crate::element::{DType, Element};
use crate::error::Result;
use crate::program::OpCall;
use half::f16;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (k, smallest) = (option(call, "k")?, settings(call)?.has("smallest"));
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let x = &x[..there(call, x.len())?];
        let places = top_k(x, k, smallest);
        let k = places.len();
        let best: Vec<T> = places.iter().map(|&i| x[i]).collect();
        let places: Vec<u32> = places.iter().map(|&i| i as u32).collect();
        Ok(vec![Wanted::exact(&[k], best)?, Wanted::exact(&[k], places)?])
    })
}

/// Returns the positions of the `k` best elements: the front of a stable sort, largest or smallest first. Every
/// NaN is worse than every number, and of equal elements the first is the best.
pub fn top_k<T: Element>(input: &[T], k: usize, smallest: bool) -> Vec<usize> {
    let width = if T::DTYPE == DType::U64 { 64 } else { 32 };
    let mut positions = sort_positions(input, !smallest, 0..width);
    positions.truncate(k);
    positions
}

#[cfg(test)]
#[path = "tests/top_k.rs"]
mod tests;
