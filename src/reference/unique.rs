use super::prelude::*;

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
#[path = "tests/unique.rs"]
mod tests;
