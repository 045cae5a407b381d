use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    if settings(call)?.has("positions") {
        let flags = input::<u32>(call, 0)?;
        let flags = &flags[..there(call, flags.len())?];
        let kept = select(&(0..flags.len() as u32).collect::<Vec<_>>(), flags);
        return Ok(vec![Wanted::exact(&[kept.len()], kept)?]);
    }
    let flags = input::<u32>(call, 1)?;
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let kept = select(&x[..there(call, x.len())?], flags);
        Ok(vec![Wanted::exact(&[kept.len()], kept)?])
    })
}

/// Returns the elements of `input` with a nonzero flag.
pub fn select<T: Copy>(input: &[T], flags: &[u32]) -> Vec<T> {
    input.iter().zip(flags).filter(|(_, flag)| **flag != 0).map(|(x, _)| *x).collect()
}

#[cfg(test)]
#[path = "tests/select.rs"]
mod tests;
