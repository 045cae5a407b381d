//! The best of each row.

use super::judge::{Wanted, by_input, input, option, output_shape, settings};
use super::top_k;
use crate::element::Element;
use crate::error::Result;
use crate::program::OpCall;
use half::f16;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (k, smallest) = (option(call, "k")?, settings(call)?.has("smallest"));
    let (shape, n) = (output_shape(call, 0), call.inputs().next().map_or(1, |x| x.shape()[1]));
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let (values, indices) = top_k_rows(input::<T>(call, 0)?, n, k, smallest);
        Ok(vec![Wanted::exact(&shape, values)?, Wanted::exact(&shape, indices)?])
    })
}

/// Returns the `k` best elements of each row of `n`, in order, and their positions in the row: [`top_k`] of each row.
pub fn top_k_rows<T: Element>(input: &[T], n: usize, k: usize, smallest: bool) -> (Vec<T>, Vec<u32>) {
    let of_row = |row| top_k(row, k, smallest).into_iter().map(move |i| (row[i], i as u32));
    input.chunks(n.max(1)).flat_map(of_row).unzip()
}

#[cfg(test)]
#[path = "tests/top_k_rows.rs"]
mod tests;
