use super::philox;
use super::prelude::*;
use crate::primitives::{Categorical, alias_table};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    Ok(vec![Wanted::exact(&output_shape(call, 0), categorical(descriptor::<Categorical>(call)?))?])
}

/// Returns the categories.
pub fn categorical(op: &Categorical) -> Vec<u32> {
    let (weights, n, [seed, stream, offset]) = op.parts();
    let table = alias_table(weights);
    let word = |at: u64| {
        let block = (offset + at) / 4;
        let counter = [block as u32, (block >> 32) as u32, stream as u32, (stream >> 32) as u32];
        u64::from(philox(counter, seed)[((offset + at) % 4) as usize])
    };
    let number = |i: u64| {
        let column = (word(2 * i) * table.len() as u64) >> 32;
        let [own, other] = table[column as usize];
        if word(2 * i + 1) < u64::from(own) { column as u32 } else { other }
    };
    (0..n as u64).map(number).collect()
}

#[cfg(test)]
#[path = "tests/categorical.rs"]
mod tests;
