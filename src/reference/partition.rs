use super::prelude::*;
use super::select;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let there = there(call, x.len())?;
        let (all, _) = partition(&x[..there], &input::<u32>(call, 1)?[..there]);
        Ok(vec![Wanted::exact(&[there], all)?])
    })
}

/// Returns the elements of `input` with a nonzero flag, then the others, both in order; and how many have the flag.
pub fn partition<T: Copy>(input: &[T], flags: &[u32]) -> (Vec<T>, usize) {
    let mut kept = select(input, flags);
    let count = kept.len();
    let others: Vec<u32> = flags.iter().map(|flag| u32::from(*flag == 0)).collect();
    kept.extend(select(input, &others));
    (kept, count)
}

#[cfg(test)]
#[path = "tests/partition.rs"]
mod tests;
