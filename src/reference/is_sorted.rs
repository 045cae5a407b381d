use super::lower_bound::order;
use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let descending = settings(call)?.has("descending");
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let sorted = is_sorted(&x[..there(call, x.len())?], descending);
        Ok(vec![Wanted::exact(&[], vec![u32::from(sorted)])?])
    })
}

/// Returns whether no element belongs before the one before it. Floats are compared by value; NaN comes last either
/// way.
pub fn is_sorted<T: Number>(input: &[T], descending: bool) -> bool {
    let is_nan = |x: T| x.to_f64().is_nan();
    input.is_sorted_by(|&x, &y| match descending {
        true => is_nan(y) || !is_nan(x) && order(y, x).is_le(),
        false => order(x, y).is_le(),
    })
}

#[cfg(test)]
#[path = "tests/is_sorted.rs"]
mod tests;
