use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let there = there(call, input::<u32>(call, 1)?.len())?;
    let table = call.inputs().next().map(|table| table.shape().iter().skip(1).product());
    let (n, indices) = (table.unwrap_or(1), front_of(call, 1, there)?);
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let rows = gather(n, input::<T>(call, 0)?, indices);
        Ok(vec![Wanted::exact(&output_shape(call, 0), rows)?])
    })
}

/// Returns rows of `table`, `n` elements each, by index; zeros for an index out of range.
pub fn gather<T: Element>(n: usize, table: &[T], indices: &[u32]) -> Vec<T> {
    let zeros = vec![T::default(); n];
    let row = |&i: &u32| match (i as usize).checked_mul(n) {
        Some(at) => table.get(at..).and_then(|rest| rest.get(..n)).unwrap_or(&zeros),
        None => &zeros,
    };
    indices.iter().flat_map(row).copied().collect()
}

#[cfg(test)]
#[path = "tests/gather.rs"]
mod tests;
