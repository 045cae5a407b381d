use super::prelude::*;
use super::sort_positions;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (rank, largest) = (option::<usize>(call, "n")?, settings(call)?.has("largest"));
    by_input!(call, 0, [f32, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let x = &x[..there(call, x.len())?];
        let found = nth_element(x, rank.min(x.len().saturating_sub(1)), largest);
        // Of nothing: NaN, or the integer that comes first.
        let first = if largest { f64::INFINITY } else { f64::NEG_INFINITY };
        let none = T::from_f64(if T::DTYPE.is_float() { f64::NAN } else { first });
        Ok(vec![Wanted::exact(&[], vec![found.unwrap_or(none)])?])
    })
}

/// Returns the element at a rank of the sorted input, from 0, counted from the smallest or the largest; `None` if there
/// is no such rank. A NaN has the standard bits.
pub fn nth_element<T: Number>(input: &[T], rank: usize, largest: bool) -> Option<T> {
    let at = *sort_positions(input, largest, 0..32).get(rank)?;
    Some(if input[at].to_f64().is_nan() { T::from_f64(f64::NAN) } else { input[at] })
}

#[cfg(test)]
#[path = "tests/nth_element.rs"]
mod tests;
