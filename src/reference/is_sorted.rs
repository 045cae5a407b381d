//! Whether an array is sorted.

use super::Number;
use super::judge::{Wanted, by_input, input, settings, there};
use super::lower_bound::order;
use crate::error::Result;
use crate::program::OpCall;
use half::f16;

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
mod tests {
    use super::*;

    #[test]
    fn order_by_hand() {
        let nan = f32::NAN;
        assert!(is_sorted(&[-1.0, 0.0, -0.0, 2.0, nan, -nan], false) && !is_sorted(&[nan, 1.0], false));
        assert!(is_sorted(&[2.0, -0.0, 0.0, -1.0, nan, -nan], true) && !is_sorted(&[nan, 1.0], true));
        assert!(is_sorted::<u32>(&[], false) && is_sorted(&[3u32], true) && !is_sorted(&[1, 2, 1], false));
    }
}
