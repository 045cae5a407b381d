use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let lengths = usize::from(named::<u32>(call, "length")?.is_some());
    let holds: Vec<bool> = by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let y = if call.inputs().count() > 1 + lengths { input::<T>(call, 1)?.to_vec() } else { vec![T::default(); x.len()] };
        Ok(x.iter().zip(&y).map(|(x, y)| x != y).collect())
    })?;
    let found = find(&holds[..there(call, holds.len())?]);
    Ok(vec![Wanted::exact(&[2], found.to_vec())?])
}

/// Returns the first place that is true, or the number of places, and how many are true.
pub fn find(holds: &[bool]) -> [u32; 2] {
    let first = holds.iter().position(|x| *x).unwrap_or(holds.len());
    [first as u32, holds.iter().filter(|x| **x).count() as u32]
}

#[cfg(test)]
#[path = "tests/find.rs"]
mod tests;
