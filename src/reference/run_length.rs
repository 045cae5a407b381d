use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let (values, counts) = run_length(&x[..there(call, x.len())?]);
        let runs = [counts.len()];
        Ok(vec![Wanted::exact(&runs, values)?, Wanted::exact(&runs, counts)?])
    })
}

/// Returns the first element and the length of each run, by `==`.
pub fn run_length<T: Copy + PartialEq>(input: &[T]) -> (Vec<T>, Vec<u32>) {
    let (mut values, mut counts) = (Vec::new(), Vec::<u32>::new());
    for (i, &x) in input.iter().enumerate() {
        match counts.last_mut() {
            Some(count) if x == input[i - 1] => *count += 1,
            _ => {
                values.push(x);
                counts.push(1);
            }
        }
    }
    (values, counts)
}

#[cfg(test)]
#[path = "tests/run_length.rs"]
mod tests;
