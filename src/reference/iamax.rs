use super::asum::magnitudes;
use super::prelude::*;
use super::reduce;
use crate::primitives::Operator;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16], T => {
        let x = input::<T>(call, 0)?;
        let x = &x[..there(call, x.len())?];
        let found = vec![iamax(x)];
        // Of nothing, any number.
        let bound = x.is_empty().then(|| vec![f64::INFINITY]);
        Ok(vec![Wanted { bound, ..Wanted::exact(&[], found)? }])
    })
}

/// Finds the first position of the largest magnitude, or of the first NaN; 0 for no elements.
pub fn iamax<T: Number>(x: &[T]) -> u32 {
    reduce(&Operator::ArgMax, 1, x.len(), &magnitudes(x)).map_or(0, |at| at[0] as u32)
}

#[cfg(test)]
#[path = "tests/iamax.rs"]
mod tests;
