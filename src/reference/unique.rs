//! One element of each run of equal neighbours.

use super::judge::{Wanted, by_input, input, there};
use crate::error::Result;
use crate::program::OpCall;
use half::f16;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let firsts = unique(&x[..there(call, x.len())?]);
        Ok(vec![Wanted::exact(&[firsts.len()], firsts)?])
    })
}

/// Returns the first element of each run, in order. `==` decides: -0 equals +0, NaN equals nothing.
pub fn unique<T: Copy + PartialEq>(input: &[T]) -> Vec<T> {
    let head = |i: &usize| *i == 0 || input[*i] != input[i - 1];
    (0..input.len()).filter(head).map(|i| input[i]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_give_their_first_element() {
        assert_eq!(unique(&[7, 7, 3, 3, 3, 7]), [7, 3, 7]);
        assert_eq!(unique::<u32>(&[]), [0; 0]);
        let bits: Vec<u32> = unique(&[-0.0f32, 0.0, 1.0]).iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, [(-0.0f32).to_bits(), 1f32.to_bits()]);
        assert_eq!(unique(&[f32::NAN, f32::NAN]).len(), 2);
    }
}
