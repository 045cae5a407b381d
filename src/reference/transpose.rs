use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let shape = output_shape(call, 0);
    let [.., n, m] = shape[..] else {
        return Err(err!(Shape, "reference transpose: the output needs at least two axes"));
    };
    let batch = shape[..shape.len() - 2].iter().product();
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        Ok(vec![Wanted::exact(&shape, transpose(batch, m, n, input::<T>(call, 0)?))?])
    })
}

/// Transposes each of `batch` matrices of m x n in `input`.
pub fn transpose<T: Element>(batch: usize, m: usize, n: usize, input: &[T]) -> Vec<T> {
    let mut output = Vec::with_capacity(batch * m * n);
    for b in 0..batch {
        for j in 0..n {
            for i in 0..m {
                output.push(input[(b * m + i) * n + j]);
            }
        }
    }
    output
}

#[cfg(test)]
#[path = "tests/transpose.rs"]
mod tests;
