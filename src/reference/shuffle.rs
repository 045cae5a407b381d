use super::prelude::*;
use super::{random_words, sort_positions};
use crate::primitives::Shuffle;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, shape) = (descriptor::<Shuffle>(call)?, output_shape(call, 0));
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let x = input::<T>(call, 0)?;
        Ok(vec![Wanted::exact(&shape, shuffle(op, &x[..there(call, x.len())?]))?])
    })
}

/// Returns the elements in the order of the op's random words; equal words keep their order.
pub fn shuffle<T: Element>(op: &Shuffle, input: &[T]) -> Vec<T> {
    let words = random_words(&op.words());
    sort_positions(&words[..input.len()], false, 0..32).into_iter().map(|i| input[i]).collect()
}

#[cfg(test)]
#[path = "tests/shuffle.rs"]
mod tests;
