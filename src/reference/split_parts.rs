use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let count = option(call, "k")?;
    by_input!(call, 0, [f32, i32, u32], T => {
        let (x, parts) = (input::<T>(call, 0)?, input::<u32>(call, 1)?);
        let there = there(call, x.len())?;
        let (moved, counts) = split_parts(&x[..there], &parts[..there], count);
        Ok(vec![Wanted::exact(&[there], moved)?, Wanted::exact(&output_shape(call, 1), counts)?])
    })
}

/// Returns the elements of each part in turn, and how many each has. Numbers beyond the last part count as the last.
pub fn split_parts<T: Copy>(x: &[T], parts: &[u32], count: usize) -> (Vec<T>, Vec<u32>) {
    let last = count.saturating_sub(1) as u32;
    let of = |part: u32| x.iter().zip(parts).filter(move |(_, p)| (**p).min(last) == part).map(|(x, _)| *x);
    let all = (0..count as u32).map(|part| of(part).collect::<Vec<T>>());
    let all: Vec<Vec<T>> = all.collect();
    let counts = all.iter().map(|part| part.len() as u32).collect();
    (all.concat(), counts)
}

#[cfg(test)]
#[path = "tests/split_parts.rs"]
mod tests;
